package api

import (
	"context"
	"net/http"
)

// claim is what a dialect says of a path that another one owns: which requests are for it.
type claim struct {
	is    func(*Body) bool
	serve http.Handler
}

// Claim has requests to a path that another dialect owns be served by this one when their body says so.
func (s *Server) Claim(path string, is func(*Body) bool, serve http.Handler) {
	s.claims[path] = append(s.claims[path], claim{is, serve})
}

// Shared serves a path of the dialect that owns it: all requests that no other dialect has claimed.
func (s *Server) Shared(path string, owner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims := s.claims[path]
		if r.Method != http.MethodPost || len(claims) == 0 {
			owner.ServeHTTP(w, r)
			return
		}
		b, err := ReadBody(r)
		if err != nil { // it stays unreadable, and whoever reads it says so
			owner.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		for _, c := range claims {
			if c.is(b) {
				c.serve.ServeHTTP(w, r)
				return
			}
		}
		owner.ServeHTTP(w, r)
	})
}
