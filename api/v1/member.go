package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

func (s *service) memberRoutes() {
	registerOperation(s, apiOperation{id: "get-info", method: http.MethodGet, path: "/v1/info", tag: "member",
		summary: "With whom am I speaking?"}, s.getInfo)
	registerOperation(s, apiOperation{id: "get-settings", method: http.MethodGet, path: "/v1/settings", tag: "member",
		summary: "What was this member configured with?",
		text:    "Of the member that answers, as it holds, with defaults, and without secrets."}, s.getSettings)
}

func (s *service) getInfo(context.Context, *struct{}) (*bodyResponse[wire.Info], error) {
	return &bodyResponse[wire.Info]{wire.Info{Version: s.Version, Store: s.StoreKind, Member: s.Name, Now: wire.Time{Time: s.Engine.Now()},
		TraceURL: s.TraceURL, LogURL: s.LogURL}}, nil
}

func (s *service) getSettings(context.Context, *struct{}) (*bodyResponse[wire.Settings], error) {
	if s.shell == nil {
		return &bodyResponse[wire.Settings]{wire.Settings{AllowOrigins: []string{}, AllowHosts: []string{}}}, nil
	}
	return &bodyResponse[wire.Settings]{s.shell.Settings()}, nil
}
