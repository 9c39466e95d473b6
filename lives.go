package troupe

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// A member that was fenced, because its host stood still for longer than its lease, cannot work any
// more. In a program, a new life of the member starts at once. If the program serves the API, Serve
// ends with an error first, and the new life starts with the next call. A member whose store went
// back in time starts a new life at once, and Serve continues with it, because all other members
// lost theirs, too.

// isLost reports whether the member was fenced. The caller holds e.mu, as for all functions of this
// file except those that lock it themselves.
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

// isReplaceable reports whether a new member may replace one that was lost. While the API is
// served, Serve must report the loss first, unless the store was the reason.
func (e *Engine) isReplaceable() bool {
	return e.isLost() && (!e.serves || e.member.Rewound() != nil)
}

// ensureMember starts a member if there is none.
func (e *Engine) ensureMember(ctx context.Context) error {
	if e.isReplaceable() {
		e.discardMember()
	}
	if e.member != nil {
		return publishFunctions(ctx, e)
	}
	if e.ctx.Err() != nil {
		return errClosed
	}
	if err := publishFunctions(ctx, e); err != nil {
		return err
	}
	if err := e.startMember(ctx); err != nil {
		return err
	}
	member := e.member
	e.work.Go(func() { e.replaceWhenLost(member) })
	return nil
}

// discardMember stops a lost member, so that another can replace it. The jobs of the lost member
// may take their time, because no task waits for them.
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
		e.cfg.Logger.Warn("closing the open work of a fenced member failed", "error", err)
	}
	e.memberLife = memberLife{}
}

// The pauses between attempts to start a new life; each is twice the previous one.
const (
	firstRevival = 100 * time.Millisecond
	mostRevival  = 5 * time.Second
)

// replaceWhenLost starts a new member when the given one is lost, and retries until that succeeds.
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

// tryLive starts a new member in place of a lost one, unless Serve has reported the loss: then the
// program decides.
func (e *Engine) tryLive() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil || e.member != nil && !e.isReplaceable() || e.reportedLoss != nil && e.reportedLoss == e.member {
		return nil
	}
	err := e.ensureMember(e.ctx)
	if err != nil {
		e.cfg.Logger.Warn("member was fenced and rejoining failed, retrying", "error", err)
	}
	return err
}

// wasReplaced reports whether another member has replaced, or is replacing, the one that was asked.
func (e *Engine) wasReplaced(asked engine.Engine) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isReplaceable() || *e.currentEngine.Load() != asked
}

// forgetHistory clears caches of data that the store has lost, and counts the event.
func (e *Engine) forgetHistory(r *actors.Rewind) {
	e.stores.Clear()
	e.rewinds.WithLabelValues(map[bool]string{true: "lost", false: "kept"}[r.Lost]).Inc()
}

// newRewinds creates the metric that forgetHistory increments.
func newRewinds() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "troupe_store_failovers_total",
		Help: "Restarts of the member because another server of the store took over. " +
			"confirmed_data = kept: with all confirmed data; lost: the store went back in time."},
		[]string{"confirmed_data"})
	c.WithLabelValues("lost")
	c.WithLabelValues("kept")
	return c
}
