package engine

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

type tracedKey struct{}

// WithTraced is the context of a request that belongs to a trace; tasks that are started for it do,
// too.
func WithTraced(ctx context.Context, t *flow.Traced) context.Context {
	return context.WithValue(ctx, tracedKey{}, t)
}

// TracedOf is the trace that a request belongs to; nil = none is told.
func TracedOf(ctx context.Context) *flow.Traced {
	t, _ := ctx.Value(tracedKey{}).(*flow.Traced)
	return t
}

// AsLink points to a trace in place of belonging to it.
func AsLink(t *flow.Traced) *flow.Traced {
	if t == nil {
		return nil
	}
	linked := *t
	linked.Link = true
	return &linked
}
