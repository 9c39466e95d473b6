package api

import (
	_ "embed"
	"net/http"
	"strings"
)

//go:embed index.html
var indexPage []byte

// pages are the paths of the page itself. Some routes of the dialects share theirs with it, for who asks for HTML.
var pages = []string{"GET /{$}", "GET /ui", "GET /ui/{$}"}

// servePage shows a person with a browser the way.
func servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(indexPage) // a browser that is gone needs no page
}

func pageFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asksForPage(r) {
			servePage(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func asksForPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}
