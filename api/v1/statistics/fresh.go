package statistics

import (
	"context"
	"time"
)

// cachedAnswer is an answer that callers share for some time. One caller at a time computes it, so
// the cost does not depend on the number of callers.
type cachedAnswer[T any] struct {
	turn chan struct{} // held by the caller that computes the answer
	made time.Time
	last *T
}

func newFresh[T any]() *cachedAnswer[T] { return &cachedAnswer[T]{turn: make(chan struct{}, 1)} }

// getOrMake returns the cached answer if it is at most age old, and computes a new one otherwise.
func (f *cachedAnswer[T]) getOrMake(ctx context.Context, now time.Time, age time.Duration,
	make func(context.Context) (*T, error)) (*T, error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.turn }()
	if f.last != nil && now.Sub(f.made) < age {
		return f.last, nil
	}
	answer, err := make(ctx)
	if err == nil {
		f.last, f.made = answer, now
	}
	return answer, err
}
