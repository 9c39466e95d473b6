package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// parkUntil is called before every wait of the member itself. With the real host it returns at once
// and the wait blocks by itself; the simulator returns when the wait has ended.
func (m *Member) parkUntil(over func() bool) {
	if m.cfg.Host.Park != nil {
		m.cfg.Host.Park(over)
	}
}

// isClosed reports whether a channel without values is closed. A nil channel never is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errTimeUp ends a wait at the time limit of its caller.
var errTimeUp = errors.New("the time is up")

// errLost is the answer when this member can no longer write. The requested change may have been
// written just before.
var errLost = flow.Errorf(flow.Busy, "the member was fenced off, since its lease had run out or "+
	"its store went back in time: ask another one")

// answerOf waits for an answer. An available answer wins over other reasons to end the wait, so
// that the result does not depend on chance.
func answerOf[T any](ctx context.Context, m *Member, done <-chan T, timeUp <-chan struct{}) (T, error) {
	lost := m.Lost()
	m.parkUntil(func() bool {
		return len(done) > 0 || isClosed(timeUp) || isClosed(lost) || ctx.Err() != nil || m.ctx.Err() != nil
	})
	select {
	case v := <-done:
		return v, nil
	case <-timeUp:
	case <-lost:
	case <-ctx.Done():
	case <-m.ctx.Done():
	}
	var none T
	switch {
	case len(done) > 0:
		return <-done, nil
	case ctx.Err() != nil:
		return none, fmt.Errorf("waiting for an answer: %w", ctx.Err())
	case m.ctx.Err() != nil:
		return none, errLeaving
	case isClosed(lost):
		return none, errLost
	}
	return none, errTimeUp
}
