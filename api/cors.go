package api

import "net/http"

// These CORS values are for the routes of the compatible dialects, whose clients expect exactly
// these texts.
const (
	CommonMethods = "GET,POST,OPTIONS"
	commonHeaders = "Content-Type, Authorization"
)

// withCORS adds the CORS headers of the original product to every answer, and answers OPTIONS. The
// headers allow every origin, because the guard decides which requests are served.
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

// These CORS values are for /v1.
const (
	v1Methods = "GET,POST,PUT,DELETE,OPTIONS"
	v1Headers = "Content-Type, Authorization, Idempotency-Key, Last-Event-ID, X-Request-Id"
	v1Tells   = "Retry-After, X-Request-Id"
)

// ForPages lets web pages that the guard admits read the answers of /v1. It answers a preflight
// request without a token, because browsers send none with it.
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
