package api

import (
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// traced tells of the trace that a request belongs to. Headers that say it wrongly say nothing.
func traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := flow.ReadTraced(r.Header.Get(wire.HeaderTrace), strings.Join(r.Header.Values(wire.HeaderTraceState), ","))
		if t == nil {
			next.ServeHTTP(w, r)
			return
		}
		of := r.WithContext(engine.WithTraced(r.Context(), t))
		defer func() { r.Pattern = of.Pattern }() // as timed does
		next.ServeHTTP(w, of)
	})
}
