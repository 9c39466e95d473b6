package logids

import (
	"context"
	"log/slog"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Job has lines tell which job they are about.
func Job(ctx context.Context, j *flow.Job) context.Context {
	return With(ctx, func() []slog.Attr {
		ids := attemptAttrs(j.Task, j.Address)
		if j.Plan != nil && j.Plan.FlowSlug != "" {
			ids = append(ids, slog.String("flow", j.Plan.FlowSlug))
		}
		return append(ids, slog.String("trace_id", trace.IDOf(j.Task, j.Traced).String()), slog.String("span_id", trace.SpanOf(j.Task, j.Address).String()))
	})
}

// Attempt has lines tell which attempt they are about, where its task is not at hand.
func Attempt(ctx context.Context, task string, a flow.Address) context.Context {
	return With(ctx, func() []slog.Attr { return attemptAttrs(task, a) })
}

// JobID does the same by the id of a job. One that means nothing adds nothing.
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
