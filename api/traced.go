package api

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/logids"
)

// withTrace adds the trace of the request's headers to the context. It ignores malformed headers.
func withTrace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := flow.ReadTraced(r.Header.Get(wire.HeaderTrace), strings.Join(r.Header.Values(wire.HeaderTraceState), ","))
		if t == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx := logids.With(engine.WithTraced(r.Context(), t), func() []slog.Attr {
			trace, span := t.Linked()
			return []slog.Attr{slog.String("trace_id", trace), slog.String("span_id", span)}
		})
		of := r.WithContext(ctx)
		defer func() { r.Pattern = of.Pattern }() // as in withTimeLimit
		next.ServeHTTP(w, of)
	})
}
