package logids

import (
	"context"
	"log/slog"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Job returns a context whose log lines contain the ids of a job.
func Job(ctx context.Context, j *flow.Job) context.Context {
	return With(ctx, func() []slog.Attr {
		ids := attemptAttrs(j.Task, j.Address)
		if j.Plan != nil && j.Plan.FlowSlug != "" {
			ids = append(ids, slog.String("flow", j.Plan.FlowSlug))
		}
		return append(ids, slog.String("trace_id", trace.IDOf(j.Task, j.Traced).String()),
			slog.String("span_id", trace.SpanOf(j.Task, j.Address).String()))
	})
}

// Attempt returns a context whose log lines contain the ids of an attempt, if only its address is
// known.
func Attempt(ctx context.Context, task string, a flow.Address) context.Context {
	return With(ctx, func() []slog.Attr { return attemptAttrs(task, a) })
}

// JobID is like Attempt, for the id of a job. An invalid id adds nothing.
func JobID(ctx context.Context, id string) context.Context {
	return With(ctx, func() []slog.Attr {
		task, a, err := flow.ParseJobID(id)
		if err != nil {
			return nil
		}
		return attemptAttrs(task, a)
	})
}

func attemptAttrs(task string, a flow.Address) []slog.Attr {
	ids := []slog.Attr{slog.String("task", task), slog.String("node", a.Node), slog.Int("unit", a.Unit), slog.Int("attempt", a.Attempt)}
	if a.Scope != "" {
		ids = append(ids, slog.String("scope", a.Scope))
	}
	return ids
}
