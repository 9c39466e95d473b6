package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// errTimeUp ends a wait at the time limit of its caller.
var errTimeUp = errors.New("the time is up")

// errLost is the answer when this member can no longer write. The requested change may have been
// written just before.
var errLost = flow.Errorf(flow.Busy, "the member was fenced off, since its lease had run out or "+
	"its store went back in time: ask another one")

// answerOf waits for an answer. An available answer wins over other reasons to end the wait, so the
// result does not depend on the random choice of select.
func answerOf[T any](ctx context.Context, m *Member, done <-chan T, timeUp <-chan struct{}) (T, error) {
	lost := m.Lost()
	m.work.Park(func() bool {
		return len(done) > 0 || host.Closed(timeUp) || host.Closed(lost) || ctx.Err() != nil || m.work.HasEnded()
	})
	select {
	case v := <-done:
		return v, nil
	case <-timeUp:
	case <-lost:
	case <-ctx.Done():
	case <-m.work.Context().Done():
	}
	var none T
	switch {
	case len(done) > 0:
		return <-done, nil
	case ctx.Err() != nil:
		return none, fmt.Errorf("waiting for an answer: %w", ctx.Err())
	case m.work.HasEnded():
		return none, errLeaving
	case host.Closed(lost):
		return none, errLost
	}
	return none, errTimeUp
}
