package api

import "net/http"

// The CORS values that browsers get for the routes of the compatible dialects. Their clients know
// exactly these words.
const (
	CommonMethods = "GET,POST,OPTIONS"
	commonHeaders = "Content-Type, Authorization"
)

// withCORS gives every answer the CORS headers of the original product, and answers OPTIONS. These
// headers allow every origin; the guard decides which requests are served.
func withCORS(methods string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setCORS(w.Header(), "*", methods, commonHeaders)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The CORS values that browsers get for /v1.
const (
	v1Methods = "GET,POST,PUT,DELETE,OPTIONS"
	v1Headers = "Content-Type, Authorization, Idempotency-Key, Last-Event-ID, X-Request-Id"
	v1Tells   = "Retry-After, X-Request-Id"
)

// ForPages lets web pages that the guard has admitted read the answers of /v1. A preflight request
// is answered without a token, because a browser sends none with it.
func ForPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, h := r.Header.Get("Origin"), w.Header()
		h.Add("Vary", "Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		setCORS(h, origin, v1Methods, v1Headers)
		h.Set("Access-Control-Expose-Headers", v1Tells)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func setCORS(h http.Header, origin, methods, headers string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", headers)
}
