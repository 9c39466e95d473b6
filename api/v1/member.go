package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

func (s *service) memberRoutes() {
	serve(s, operation{id: "get-info", method: http.MethodGet, path: "/v1/info", tag: "member",
		summary: "With whom am I speaking?"}, s.info)
}

func (s *service) info(context.Context, *struct{}) (*body[wire.Info], error) {
	return &body[wire.Info]{wire.Info{Version: s.Version, Store: s.StoreKind, Member: s.Name, Now: wire.Time{Time: s.Engine.Now()},
		TraceURL: s.TraceURL, LogURL: s.LogURL}}, nil
}
