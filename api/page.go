package api

import (
	"net/http"
	"strings"
)

// pagesPath is where pages for people are.
const pagesPath = "/ui/"

// pageRoutes serve the pages, where there are some, and lead to them from the top.
func (s *Server) pageRoutes() {
	if s.cfg.Pages == nil {
		return
	}
	s.MountOpen("GET "+pagesPath, s.cfg.Pages)
	for _, path := range []string{"GET /{$}", "GET /ui"} {
		s.MountOpen(path, http.RedirectHandler(pagesPath, http.StatusFound))
	}
}

// pageFirst leads a person with a browser to the page of the same name. Some routes of the dialects
// share theirs with pages.
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
