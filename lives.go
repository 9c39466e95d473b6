package troupe

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// A member that was fenced, because its host stood still for longer than its lease, is of no use any more. In a program it
// begins a new life: at once, or, if the program served the API, whose end says so, when it is asked for something again.

// lost says whether the member was fenced. It is called with the lock, like all here but revive and reborn.
func (e *Engine) lost() bool { return e.member != nil && ended(e.member) }

func ended(m *actors.Member) bool {
	select {
	case <-m.Lost():
		return true
	default:
		return false
	}
}

var errClosed = errors.New("the engine was closed")

// live sees to it that there is a member. Who serves the API has to hear that it was lost before there is another one.
func (e *Engine) live(ctx context.Context) error {
	if e.lost() && !e.serves {
		e.bury()
	}
	if e.member != nil {
		return nil
	}
	if e.ctx.Err() != nil {
		return errClosed
	}
	if err := e.start(ctx); err != nil {
		return err
	}
	member := e.member
	e.work.Go(func() { e.revive(member) })
	return nil
}

// bury ends a member that was lost, so that another one can take its place. Its jobs, which nobody waits for any longer, may
// take their time.
func (e *Engine) bury() {
	member := e.member
	e.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = member.Stop(ctx) // it has nothing to give back
	})
	e.member = nil
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := e.stop(ctx); err != nil {
		e.cfg.Logger.Warn("what a member that was fenced had open could not be closed", "error", err)
	}
	e.membership, e.attached, e.workers = nil, nil, nil
}

// The pauses between two tries to live again, each twice as long as the one before.
const (
	firstRevival = 100 * time.Millisecond
	mostRevival  = 5 * time.Second
)

// revive has another member take the place of one when that is lost, however long it takes.
func (e *Engine) revive(member *actors.Member) {
	select {
	case <-member.Lost():
	case <-e.ctx.Done():
		return
	}
	for pause := firstRevival; e.tryLive() != nil; pause = min(2*pause, mostRevival) {
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return
		}
	}
}

// tryLive has another member take the place of one that was lost, unless that is up to who serves.
func (e *Engine) tryLive() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil || e.serves || e.told != nil && e.told == e.member {
		return nil
	}
	err := e.live(e.ctx)
	if err != nil {
		e.cfg.Logger.Warn("the member was fenced off and cannot join again: trying on", "error", err)
	}
	return err
}

// reborn says whether another member has taken, or takes, the place of the one that was asked.
func (e *Engine) reborn(asked engine.Engine) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost() && !e.serves || *e.asked.Load() != asked
}
