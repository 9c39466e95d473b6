package v1

import (
	"context"
	"time"
)

// cachedAnswer is an answer that everybody gets who asks within some time. It is made by one of
// them at once, so that it costs the same however many ask.
type cachedAnswer[T any] struct {
	turn chan struct{} // whose turn it is to look
	made time.Time
	last *T
}

func newFresh[T any]() *cachedAnswer[T] { return &cachedAnswer[T]{turn: make(chan struct{}, 1)} }

// getOrMake answers with what was made no longer ago than age, or makes it.
func (f *cachedAnswer[T]) getOrMake(ctx context.Context, now time.Time, age time.Duration, make func(context.Context) (*T, error)) (*T, error) {
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
