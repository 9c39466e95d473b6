package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Family is a family of routes.
type Family interface{ Mount(s *Server) }

// Handler serves a route of a dialect. Its errors are answered in the form of the dialect.
type Handler func(w http.ResponseWriter, r *http.Request) error

// On maps the methods of a route to their handlers. HEAD is served as a GET without its body.
type On map[string]Handler

// Methods returns the handler of a route. It rejects other methods with the text otherwise.
func Methods(otherwise string, by On) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		h, ok := by[method]
		if !ok {
			w.Header().Set("Allow", by.Allowed())
			return &Refusal{http.StatusMethodNotAllowed, flow.Invalid, otherwise}
		}
		return h(w, r)
	}
}

// Allowed returns the methods of a route, for CORS headers.
func (o On) Allowed() string {
	return strings.Join(append(slices.Sorted(maps.Keys(o)), http.MethodOptions), ",")
}

// Mount adds a route that needs a token and a role that may call it.
func (s *Server) Mount(pattern string, h http.Handler) {
	s.mountRoute(pattern, true, s.NeedToken(s.requireRole(pattern, h)))
}

// MountStream adds a route for streams that needs a token. Streams wait for no turn, because they
// have no end. The handler must bound each message and call stream.Stay.
func (s *Server) MountStream(pattern string, h http.Handler) {
	s.mountRoute(pattern, true, s.needToken(s.requireRole(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Body.(*boundedBody); ok {
			r.Body = b.unbounded
		}
		h.ServeHTTP(w, r)
	}))))
}

// MountOpen adds a route that needs no token, such as pages, and services that check their callers
// themselves.
func (s *Server) MountOpen(pattern string, h http.Handler) { s.mountRoute(pattern, false, h) }

func (s *Server) mountRoute(pattern string, byRole bool, h http.Handler) {
	s.mux.Handle(pattern, h)
	s.routed[pattern] = byRole
}

// MountCompatible adds a route that needs a token, with and without the prefix /api. A GET for HTML
// is redirected to the web page of the same path. methods is the list of methods for CORS headers.
func (s *Server) MountCompatible(path, methods string, h http.Handler) {
	served := withCORS(methods, s.NeedToken(s.requireRole(path, h)))
	s.mountRoute("/api"+path, true, served)
	s.mountRoute(path, true, s.pageFirst(served))
}

// unknownRoute answers in the dialect of the original product. An unknown path has CORS headers for
// OPTIONS only.
func (s *Server) unknownRoute(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		withCORS(CommonMethods, nil).ServeHTTP(w, r)
		return
	}
	s.needToken(http.HandlerFunc(http.NotFound)).ServeHTTP(w, r)
}

// everything is the pattern for paths without a route or a page.
const everything = "/"

// unknownPath answers an unknown path, with 405 if another method would match. It needs a token, so
// that callers without one cannot explore the routes.
func (s *Server) unknownPath(w http.ResponseWriter, r *http.Request) {
	if allowed := MethodsOf(s.mux, r, everything); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p := problemOf(flow.Invalid, "method",
			fmt.Sprintf("the route does not support the method %.20s", r.Method),
			"use "+strings.Join(allowed, " or "))
		p.Status = http.StatusMethodNotAllowed
		refuseRequest(w, r, p)
		return
	}
	refuseRequest(w, r, problemOf(flow.NotFound, "path", "there is no such route",
		"/v1/docs lists the routes of /v1; the pages for people are /ui/"))
}

// MethodsOf returns the methods for which a request's path matches a pattern other than otherwise.
func MethodsOf(mux *http.ServeMux, r *http.Request, otherwise string) []string {
	var found []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != otherwise {
			found = append(found, method)
		}
	}
	return found
}
