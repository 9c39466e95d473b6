package troupe

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// A member that was fenced, because its host stood still for longer than its lease, is of no use
// any more. In a program it begins a new life: at once, or, if the program served the API, whose
// end says so, when it is asked for something again. A member whose store went back in time begins
// a new life at once, and Serve goes on with that: the others lost theirs, too.

// isLost reports whether the member was fenced. It is called with the lock, like all here but
// revive and reborn.
func (e *Engine) isLost() bool { return e.member != nil && isFenced(e.member) }

func isFenced(m *actors.Member) bool {
	select {
	case <-m.Lost():
		return true
	default:
		return false
	}
}

var errClosed = errors.New("the engine was closed")

// isReplaceable reports whether another member may take the place of one that was lost. Who serves
// the API has to hear of the loss first, unless the store was the reason.
func (e *Engine) isReplaceable() bool {
	return e.isLost() && (!e.serves || e.member.Rewound() != nil)
}

// ensureMember sees to it that there is a member.
func (e *Engine) ensureMember(ctx context.Context) error {
	if e.isReplaceable() {
		e.discardMember()
	}
	if e.member != nil {
		return nil
	}
	if e.ctx.Err() != nil {
		return errClosed
	}
	if err := e.startMember(ctx); err != nil {
		return err
	}
	member := e.member
	e.work.Go(func() { e.replaceWhenLost(member) })
	return nil
}

// discardMember ends a member that was lost, so that another one can take its place. Its jobs,
// which nobody waits for any longer, may take their time.
func (e *Engine) discardMember() {
	member := e.member
	e.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		_ = member.Stop(ctx) // it has nothing to give back
	})
	if r := member.Rewound(); r != nil {
		e.forgetHistory(r)
	}
	e.member = nil
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := e.stopMember(ctx); err != nil {
		e.cfg.Logger.Warn("what a member that was fenced had open could not be closed", "error", err)
	}
	e.membership, e.attached, e.workers = nil, nil, nil
}

// The pauses between two tries to live again, each twice as long as the one before.
const (
	firstRevival = 100 * time.Millisecond
	mostRevival  = 5 * time.Second
)

// replaceWhenLost has another member take the place of one when that is lost, however long it
// takes.
func (e *Engine) replaceWhenLost(member *actors.Member) {
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
	if e.ctx.Err() != nil || e.member != nil && !e.isReplaceable() || e.reportedLoss != nil && e.reportedLoss == e.member {
		return nil
	}
	err := e.ensureMember(e.ctx)
	if err != nil {
		e.cfg.Logger.Warn("the member was fenced off and cannot join again: trying on", "error", err)
	}
	return err
}

// wasReplaced reports whether another member has taken, or takes, the place of the one that was
// asked.
func (e *Engine) wasReplaced(asked engine.Engine) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isReplaceable() || *e.currentEngine.Load() != asked
}

// forgetHistory forgets, and counts, what the store has lost.
func (e *Engine) forgetHistory(r *actors.Rewind) {
	e.newest.Clear()
	e.reader.Clear()
	e.rewinds.WithLabelValues(map[bool]string{true: "lost", false: "kept"}[r.Lost]).Inc()
}

// newRewinds makes the metric of what forgetHistory is called for.
func newRewinds() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "troupe_store_rewinds_total",
		Help: "Times that the store did not go on where it was, and the member began anew: confirmed = lost, the store went back in time; kept, another server took over that has all that the member knows to be stored."}, []string{"confirmed"})
	c.WithLabelValues("lost")
	c.WithLabelValues("kept")
	return c
}
