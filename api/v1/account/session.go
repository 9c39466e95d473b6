// Package account serves the caller's own resources: browser sessions, tokens and saved views.
package account

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

const (
	sessionPath = "/v1/session"
	maxSession  = 8 << 10 // maximum bytes of a request
)

// Handler serves sessions, tokens and saved views.
type Handler struct {
	Router *route.Router
	Store  api.Store
	Engine engine.Engine
	Logger *slog.Logger
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.addSessionRoutes(rt)
	h.addTokenRoutes(rt)
	h.addViewRoutes(rt)
}

func (h *Handler) addSessionRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "open-session", Method: http.MethodPost, Path: sessionPath, Tag: "member",
		Summary: "Sign a browser in",
		Text: "With a valid token the browser gets a cookie that scripts cannot read (HttpOnly, " +
			"SameSite=Strict). It replaces the token in requests of this server's pages, for 12 " +
			"hours, on any member. Programs send their token themselves."}, h.openSession)
	route.Register(rt, route.Operation{ID: "close-session", Method: http.MethodDelete, Path: sessionPath, Tag: "member",
		Summary: "Sign a browser out"}, h.closeSession)
	route.Register(rt, route.Operation{ID: "get-identity", Method: http.MethodGet, Path: "/v1/me", Tag: "member",
		Summary: "Get your identity",
		Text:    "401 = a token is needed, or the cookie has expired."}, h.getIdentity)
}

// MountSessions adds the session routes, which need no token, because the browser has none yet.
func (h *Handler) MountSessions(shell *api.Server) {
	for _, way := range []string{"POST ", "DELETE "} {
		shell.MountOpen(way+sessionPath, api.ForPages(shell.FromOutside(h.Router, maxSession)))
	}
}

// sessionCookie is an answer with a cookie.
type sessionCookie struct {
	Cookie string `header:"Set-Cookie"`
	Body   wire.Identity
}

func (h *Handler) openSession(ctx context.Context, in *struct{ Body wire.SessionRequest }) (*sessionCookie, error) {
	x := route.ExchangeOf(ctx)
	if h.Router.Shell == nil || !h.Router.Shell.NeedsToken() {
		return &sessionCookie{Body: h.toMe(api.Identity{Role: api.Admin})}, nil
	}
	cookie, who, err := h.Router.Shell.OpenSession(x.Request, in.Body.Token)
	if err != nil {
		return nil, err
	}
	if cookie == nil {
		api.NoteRefusal(ctx, "a browser's token is wrong")
		return nil, &route.LocatedError{Where: "body.token",
			Hint: "send a token with which the server was started (--token, --token-file), or that " +
				"an admin has created (troupe token create)",
			Err: &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied,
				Text: "the token is wrong: this server does not know it, or it has expired"}}
	}
	return &sessionCookie{Cookie: cookie.String(), Body: h.toMe(who)}, nil
}

// clearedCookie is an answer that makes a browser delete a cookie.
type clearedCookie struct {
	Cookie string `header:"Set-Cookie"`
}

func (h *Handler) closeSession(ctx context.Context, _ *struct{}) (*clearedCookie, error) {
	x := route.ExchangeOf(ctx)
	if h.Router.Shell == nil {
		return &clearedCookie{}, nil
	}
	return &clearedCookie{Cookie: h.Router.Shell.CloseSession(x.Request).String()}, nil
}

func (h *Handler) getIdentity(ctx context.Context, _ *struct{}) (*route.Response[wire.Identity], error) {
	who := api.Identity{Role: api.Admin}
	if h.Router.Shell != nil {
		who = api.Who(ctx)
	}
	return &route.Response[wire.Identity]{Body: h.toMe(who)}, nil
}

func (h *Handler) toMe(who api.Identity) wire.Identity {
	return wire.Identity{Name: who.Name, Role: string(who.Role), NeedsToken: h.Router.Shell != nil && h.Router.Shell.NeedsToken()}
}
