package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

func (s *service) memberRoutes() {
	serve(s, operation{id: "get-info", method: http.MethodGet, path: "/v1/info", tag: "member",
		summary: "With whom am I speaking?"}, s.info)
	serve(s, operation{id: "get-settings", method: http.MethodGet, path: "/v1/settings", tag: "member",
		summary: "What was this member configured with?",
		text:    "Of the member that answers, as it holds, with defaults, and without secrets."}, s.settings)
}

func (s *service) info(context.Context, *struct{}) (*body[wire.Info], error) {
	return &body[wire.Info]{wire.Info{Version: s.Version, Store: s.StoreKind, Member: s.Name, Now: wire.Time{Time: s.Engine.Now()},
		TraceURL: s.TraceURL, LogURL: s.LogURL}}, nil
}

func (s *service) settings(context.Context, *struct{}) (*body[wire.Settings], error) {
	if s.shell == nil {
		return &body[wire.Settings]{wire.Settings{AllowOrigins: []string{}, AllowHosts: []string{}}}, nil
	}
	return &body[wire.Settings]{s.shell.Settings()}, nil
}
