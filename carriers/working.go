package carriers

import "context"

type hearing struct{}

// Hearing returns the context of a job with a callback, which receives the time when the carrier's
// worker has started the job.
func Hearing(ctx context.Context, hear func(since int64)) context.Context {
	return context.WithValue(ctx, hearing{}, hear)
}

// Working calls the callback of Hearing, if there is one. It returns when the time is stored, or
// the job is no longer needed.
func Working(ctx context.Context, since int64) {
	if hear, ok := ctx.Value(hearing{}).(func(int64)); ok {
		hear(since)
	}
}
