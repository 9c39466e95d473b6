package actors

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/logids"
)

// logContext returns the context for log lines about the task. It adds the flow and the trace id.
func (t *task) logContext() context.Context {
	return logids.With(t.m.work.Context(), func() []slog.Attr {
		if t.state == nil {
			return nil
		}
		return []slog.Attr{slog.String("flow", cmp.Or(t.state.Plan.FlowSlug, t.state.Plan.FlowID)),
			slog.String("trace_id", trace.IDOf(t.id, t.state.Traced).String())}
	})
}
