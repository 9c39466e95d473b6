package engine

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

type tracedKey struct{}

// WithTraced returns the context of a request that belongs to a trace; tasks that it starts belong
// to the trace, too.
func WithTraced(ctx context.Context, t *flow.Traced) context.Context {
	return context.WithValue(ctx, tracedKey{}, t)
}

// TracedOf returns the trace that a request belongs to; nil if there is none.
func TracedOf(ctx context.Context) *flow.Traced {
	t, _ := ctx.Value(tracedKey{}).(*flow.Traced)
	return t
}

// AsLink returns a link to a trace instead of membership in it.
func AsLink(t *flow.Traced) *flow.Traced {
	if t == nil {
		return nil
	}
	linked := *t
	linked.Link = true
	return &linked
}
