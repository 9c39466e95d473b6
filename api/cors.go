package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// What browsers are told about the routes of the graph dialect, whose clients know these very words.
const (
	graphMethods = "GET,POST,OPTIONS"
	graphHeaders = "Content-Type, Authorization"
)

// compatible gives every answer the headers of the original, and answers OPTIONS. Browsers are told that
// all may call; who really may is the guard's to say.
func compatible(methods string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allow(w.Header(), "*", methods, graphHeaders)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// What browsers are told about /v1.
const (
	v1Methods = "GET,POST,PUT,DELETE,OPTIONS"
	v1Headers = "Content-Type, Authorization, Idempotency-Key, Last-Event-ID, X-Request-Id"
	v1Tells   = "Retry-After, X-Request-Id"
)

// forPages lets web pages read the answers of /v1, those pages that the guard has let in. What a browser
// asks beforehand is answered without a token, because it has none to send.
func forPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, h := r.Header.Get("Origin"), w.Header()
		h.Add("Vary", "Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		allow(h, origin, v1Methods, v1Headers)
		h.Set("Access-Control-Expose-Headers", v1Tells)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allow(h http.Header, origin, methods, headers string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", headers)
}

// allowed lists the methods of a route for browsers.
func (o on) allowed() string {
	return strings.Join(append(slices.Sorted(maps.Keys(o)), http.MethodOptions), ",")
}
