package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// parkUntil is called before every wait of the member's own. Under the real host it returns at once
// and the wait blocks by itself; the simulator returns when the wait is over.
func (m *Member) parkUntil(over func() bool) {
	if m.cfg.Host.Park != nil {
		m.cfg.Host.Park(over)
	}
}

// isClosed reports whether a channel without values is closed; nil never is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errTimeUp ends a wait that its caller bounded.
var errTimeUp = errors.New("the time is up")

// errLost is the answer when nothing of this member is written any more: what was asked for may
// have been written just before.
var errLost = flow.Errorf(flow.Busy, "the member was fenced off, since its lease had run out or its store went back in time: ask another one")

// answerOf waits for an answer. When it is there, it wins over whatever else ends the wait, so that
// nothing depends on chance.
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
