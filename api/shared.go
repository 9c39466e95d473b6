package api

import (
	"context"
	"net/http"
)

// dialectClaim is what a dialect says of a path that another one owns: which requests are for it,
// by their body or by what they are about.
type dialectClaim struct {
	is    func(*Body) bool
	about func(*http.Request) bool
	serve http.Handler
}

// Claim has requests to a path that another dialect owns be served by this one when their body says
// so.
func (s *Server) Claim(path string, is func(*Body) bool, serve http.Handler) {
	s.claims[path] = append(s.claims[path], dialectClaim{is: is, serve: serve})
}

// ClaimWhere has requests to a path that another dialect owns be served by this one when they are
// about something of its own.
func (s *Server) ClaimWhere(path string, about func(*http.Request) bool, serve http.Handler) {
	s.claims[path] = append(s.claims[path], dialectClaim{about: about, serve: serve})
}

// Shared serves a path of the dialect that owns it: all requests that no other dialect has claimed.
func (s *Server) Shared(path string, owner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies := 0
		for _, c := range s.claims[path] {
			if c.is != nil {
				bodies++
			} else if c.about(r) {
				c.serve.ServeHTTP(w, r)
				return
			}
		}
		if r.Method != http.MethodPost || bodies == 0 {
			owner.ServeHTTP(w, r)
			return
		}
		b, err := ReadBody(r)
		if err != nil { // it stays unreadable, and whoever reads it says so
			owner.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		for _, c := range s.claims[path] {
			if c.is != nil && c.is(b) {
				c.serve.ServeHTTP(w, r)
				return
			}
		}
		owner.ServeHTTP(w, r)
	})
}
