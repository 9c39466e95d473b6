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

// Handler is a route of a dialect, which answers its errors in its own way.
type Handler func(w http.ResponseWriter, r *http.Request) error

// On says which method does what on a route. HEAD is a GET whose body nobody reads.
type On map[string]Handler

// Methods are a route. What no method does is refused with a text.
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

// Allowed lists the methods of a route for browsers.
func (o On) Allowed() string {
	return strings.Join(append(slices.Sorted(maps.Keys(o)), http.MethodOptions), ",")
}

// Mount adds a route behind the tokens, for those whose role may call it.
func (s *Server) Mount(pattern string, h http.Handler) {
	s.mountRoute(pattern, true, s.NeedToken(s.requireRole(pattern, h)))
}

// MountStream adds a route behind the tokens whose requests are streams: what they send has no end,
// and no turn to wait for. Whoever serves them bounds each message, and stays (stream.Stay).
func (s *Server) MountStream(pattern string, h http.Handler) {
	s.mountRoute(pattern, true, s.needToken(s.requireRole(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Body.(*boundedBody); ok {
			r.Body = b.unbounded
		}
		h.ServeHTTP(w, r)
	}))))
}

// MountOpen adds routes that need no token: pages, and services that check themselves who comes and
// what that may do.
func (s *Server) MountOpen(pattern string, h http.Handler) { s.mountRoute(pattern, false, h) }

func (s *Server) mountRoute(pattern string, byRole bool, h http.Handler) {
	s.mux.Handle(pattern, h)
	s.routed[pattern] = byRole
}

// MountCompatible serves a route behind the tokens as clients of the original know it: under /api
// and, for those without that prefix, bare. Pages share some bare paths, so a GET that asks for
// HTML is led to the page. Browsers are told of the methods.
func (s *Server) MountCompatible(path, methods string, h http.Handler) {
	served := withCORS(methods, s.NeedToken(s.requireRole(path, h)))
	s.mountRoute("/api"+path, true, served)
	s.mountRoute(path, true, s.pageFirst(served))
}

// unknownRoute answers in the dialect of the original: what is no route has the headers for OPTIONS
// alone.
func (s *Server) unknownRoute(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		withCORS(CommonMethods, nil).ServeHTTP(w, r)
		return
	}
	s.needToken(http.HandlerFunc(http.NotFound)).ServeHTTP(w, r)
}

// everything is the pattern of what is no route and no page.
const everything = "/"

// unknownPath answers it: 405 when another method would. It is behind the tokens, so nobody learns
// without one what there is.
func (s *Server) unknownPath(w http.ResponseWriter, r *http.Request) {
	if allowed := MethodsOf(s.mux, r, everything); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		p := problemOf(flow.Invalid, "method", fmt.Sprintf("the route does not know the method %.20s", r.Method), "use "+strings.Join(allowed, " or "))
		p.Status = http.StatusMethodNotAllowed
		refuseRequest(w, r, p)
		return
	}
	refuseRequest(w, r, problemOf(flow.NotFound, "path", "there is no such route", "/v1/docs lists the routes of /v1; the pages for people are /ui/"))
}

// MethodsOf are those by which a request would have found a route, where it has found none but the
// one for everything else.
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
