package api

import (
	"net/http"
	"strings"
)

// pagesPath is the path prefix of the web pages.
const pagesPath = "/ui/"

// pageRoutes serves the web pages, if configured, and redirects the root to them.
func (s *Server) pageRoutes() {
	if s.cfg.Pages == nil {
		return
	}
	s.MountOpen("GET "+pagesPath, s.cfg.Pages)
	for _, path := range []string{"GET /{$}", "GET /ui"} {
		s.MountOpen(path, http.RedirectHandler(pagesPath, http.StatusFound))
	}
}

// pageFirst redirects browsers to the web page of the same name. Some routes of the dialects share
// their paths with pages.
func (s *Server) pageFirst(next http.Handler) http.Handler {
	if s.cfg.Pages == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asksForPage(r) {
			http.Redirect(w, r, strings.TrimSuffix(pagesPath, "/")+r.URL.EscapedPath(), http.StatusFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func asksForPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}
