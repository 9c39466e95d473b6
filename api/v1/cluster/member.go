package cluster

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
)

func (h *Handler) addMemberRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-info", Method: http.MethodGet, Path: "/v1/info", Tag: "member",
		Summary: "Get the server's information"}, h.getInfo)
	route.Register(rt, route.Operation{ID: "get-settings", Method: http.MethodGet, Path: "/v1/settings", Tag: "member",
		Summary: "Get the server's settings",
		Text:    "The settings of the member that answers, with defaults and without secrets."}, h.getSettings)
}

func (h *Handler) getInfo(context.Context, *struct{}) (*route.Response[wire.ServerInfo], error) {
	info := h.Info
	info.StoreTime = wire.Time{Time: h.Engine.Now()}
	return &route.Response[wire.ServerInfo]{Body: info}, nil
}

func (h *Handler) getSettings(context.Context, *struct{}) (*route.Response[wire.Settings], error) {
	if h.Router.Shell == nil {
		return &route.Response[wire.Settings]{Body: wire.Settings{AllowOrigins: []string{}, AllowHosts: []string{}}}, nil
	}
	return &route.Response[wire.Settings]{Body: h.Router.Shell.Settings()}, nil
}
