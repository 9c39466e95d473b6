package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

const (
	sessionPath = "/v1/session"
	maxSession  = 8 << 10 // bytes of a request
)

func (s *service) sessionRoutes() {
	serve(s, operation{id: "open-session", method: http.MethodPost, path: sessionPath, tag: "member",
		summary: "Sign a browser in",
		text:    "For a token that is right the browser gets a cookie that no script can read (HttpOnly, SameSite=Strict). It stands for the token in requests of pages of this server, for 12 hours, with any member. Programs send their token itself."}, s.openSession)
	serve(s, operation{id: "close-session", method: http.MethodDelete, path: sessionPath, tag: "member",
		summary: "Sign a browser out"}, s.closeSession)
	serve(s, operation{id: "get-me", method: http.MethodGet, path: "/v1/me", tag: "member",
		summary: "Who am I?", text: "401 = a token is needed, or the cookie has run out."}, s.me)
}

// signed is an answer with a cookie.
type signed struct {
	Cookie string `header:"Set-Cookie"`
	Body   wire.Me
}

func (s *service) openSession(ctx context.Context, in *struct{ Body wire.OpenSession }) (*signed, error) {
	x := ctx.Value(exchangeKey{}).(exchange)
	if s.shell == nil || !s.shell.NeedsToken() {
		return &signed{Body: s.who()}, nil
	}
	cookie := s.shell.OpenSession(x.r, in.Body.Token)
	if cookie == nil {
		api.NoteRefusal(ctx, "a browser's token is wrong")
		return nil, &located{where: "body.token", hint: "send one of those that the server was started with (--token, --token-file)",
			err: &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied, Text: "the token is wrong: it is none of this server's"}}
	}
	return &signed{Cookie: cookie.String(), Body: s.who()}, nil
}

func (s *service) closeSession(ctx context.Context, _ *struct{}) (*signed, error) {
	x := ctx.Value(exchangeKey{}).(exchange)
	if s.shell == nil {
		return &signed{Body: s.who()}, nil
	}
	return &signed{Cookie: s.shell.CloseSession(x.r).String(), Body: s.who()}, nil
}

func (s *service) me(context.Context, *struct{}) (*body[wire.Me], error) {
	return &body[wire.Me]{s.who()}, nil
}

func (s *service) who() wire.Me {
	return wire.Me{Role: "admin", NeedsToken: s.shell != nil && s.shell.NeedsToken()}
}
