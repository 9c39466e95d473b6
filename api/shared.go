package api

import (
	"context"
	"net/http"
)

// dialectClaim selects requests to a path of another dialect, by their body or by their subject.
type dialectClaim struct {
	is    func(*Body) bool
	about func(*http.Request) bool
	serve http.Handler
}

// Claim makes this dialect serve requests to another dialect's path if is accepts their body.
func (s *Server) Claim(path string, is func(*Body) bool, serve http.Handler) {
	s.claims[path] = append(s.claims[path], dialectClaim{is: is, serve: serve})
}

// ClaimWhere makes this dialect serve requests to another dialect's path if about accepts their
// subject.
func (s *Server) ClaimWhere(path string, about func(*http.Request) bool, serve http.Handler) {
	s.claims[path] = append(s.claims[path], dialectClaim{about: about, serve: serve})
}

// Shared returns a handler for a path that several dialects share. owner serves all requests that
// no other dialect claims.
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
		if err != nil { // the owner reads the body again and reports the error
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
