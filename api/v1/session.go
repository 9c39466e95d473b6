package v1

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

const (
	sessionPath = "/v1/session"
	maxSession  = 8 << 10 // bytes of a request
)

// accountHandler serves sessions, tokens and saved views.
type accountHandler struct {
	router *apiRouter
	store  api.Store
	engine engine.Engine
	logger *slog.Logger
}

func (h *accountHandler) addSessionRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "open-session", method: http.MethodPost, path: sessionPath, tag: "member",
		summary: "Sign a browser in",
		text: "For a token that is right the browser gets a cookie that no script can read " +
			"(HttpOnly, SameSite=Strict). It stands for the token in requests of pages of this " +
			"server, for 12 hours, with any member. Programs send their token itself."}, h.openSession)
	registerOperation(rt, apiOperation{id: "close-session", method: http.MethodDelete, path: sessionPath, tag: "member",
		summary: "Sign a browser out"}, h.closeSession)
	registerOperation(rt, apiOperation{id: "get-me", method: http.MethodGet, path: "/v1/me", tag: "member",
		summary: "Who am I?", text: "401 = a token is needed, or the cookie has run out."}, h.getIdentity)
}

// sessionCookie is an answer with a cookie.
type sessionCookie struct {
	Cookie string `header:"Set-Cookie"`
	Body   wire.Me
}

func (h *accountHandler) openSession(ctx context.Context, in *struct{ Body wire.OpenSession }) (*sessionCookie, error) {
	x := ctx.Value(exchangeKey{}).(httpExchange)
	if h.router.shell == nil || !h.router.shell.NeedsToken() {
		return &sessionCookie{Body: h.toMe(api.Identity{Role: api.Admin})}, nil
	}
	cookie, who, err := h.router.shell.OpenSession(x.r, in.Body.Token)
	if err != nil {
		return nil, err
	}
	if cookie == nil {
		api.NoteRefusal(ctx, "a browser's token is wrong")
		return nil, &locatedError{where: "body.token",
			hint: "send one that the server was started with (--token, --token-file), or that " +
				"an admin has made (troupe token create)",
			err: &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied,
				Text: "the token is wrong: it is none of this server's, or its time is over"}}
	}
	return &sessionCookie{Cookie: cookie.String(), Body: h.toMe(who)}, nil
}

// clearedCookie is an answer that makes a browser delete a cookie.
type clearedCookie struct {
	Cookie string `header:"Set-Cookie"`
}

func (h *accountHandler) closeSession(ctx context.Context, _ *struct{}) (*clearedCookie, error) {
	x := ctx.Value(exchangeKey{}).(httpExchange)
	if h.router.shell == nil {
		return &clearedCookie{}, nil
	}
	return &clearedCookie{Cookie: h.router.shell.CloseSession(x.r).String()}, nil
}

func (h *accountHandler) getIdentity(ctx context.Context, _ *struct{}) (*bodyResponse[wire.Me], error) {
	who := api.Identity{Role: api.Admin}
	if h.router.shell != nil {
		who = api.Who(ctx)
	}
	return &bodyResponse[wire.Me]{h.toMe(who)}, nil
}

func (h *accountHandler) toMe(who api.Identity) wire.Me {
	return wire.Me{Name: who.Name, Role: string(who.Role), NeedsToken: h.router.shell != nil && h.router.shell.NeedsToken()}
}
