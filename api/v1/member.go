package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
)

func (h *clusterHandler) addMemberRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "get-info", method: http.MethodGet, path: "/v1/info", tag: "member",
		summary: "With whom am I speaking?"}, h.getInfo)
	registerOperation(rt, apiOperation{id: "get-settings", method: http.MethodGet, path: "/v1/settings", tag: "member",
		summary: "What was this member configured with?",
		text:    "Of the member that answers, as it holds, with defaults, and without secrets."}, h.getSettings)
}

func (h *clusterHandler) getInfo(context.Context, *struct{}) (*bodyResponse[wire.Info], error) {
	info := h.info
	info.Now = wire.Time{Time: h.engine.Now()}
	return &bodyResponse[wire.Info]{info}, nil
}

func (h *clusterHandler) getSettings(context.Context, *struct{}) (*bodyResponse[wire.Settings], error) {
	if h.router.shell == nil {
		return &bodyResponse[wire.Settings]{wire.Settings{AllowOrigins: []string{}, AllowHosts: []string{}}}, nil
	}
	return &bodyResponse[wire.Settings]{h.router.shell.Settings()}, nil
}
