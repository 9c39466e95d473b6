package engine

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

type tracedKey struct{}

// WithTraced returns the context of a request that belongs to a trace. Tasks that the request
// starts belong to the trace, too.
func WithTraced(ctx context.Context, t *flow.Traced) context.Context {
	return context.WithValue(ctx, tracedKey{}, t)
}

// TracedOf returns the trace of a request, or nil if it has none.
func TracedOf(ctx context.Context) *flow.Traced {
	t, _ := ctx.Value(tracedKey{}).(*flow.Traced)
	return t
}

// AsLink returns a copy of t that links to the trace instead of being part of it.
func AsLink(t *flow.Traced) *flow.Traced {
	if t == nil {
		return nil
	}
	linked := *t
	linked.Link = true
	return &linked
}
