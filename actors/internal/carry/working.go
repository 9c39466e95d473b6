package carry

import "context"

type hearing struct{}

// Hearing is the context of a job whose task wants to know since when the worker that its carrier
// has started is at it.
func Hearing(ctx context.Context, hear func(since int64)) context.Context {
	return context.WithValue(ctx, hearing{}, hear)
}

// Working tells that, if anybody wants to know it. It ends when it is stored, or the job is not
// wanted any longer.
func Working(ctx context.Context, since int64) {
	if hear, ok := ctx.Value(hearing{}).(func(int64)); ok {
		hear(since)
	}
}
