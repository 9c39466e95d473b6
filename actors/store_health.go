package actors

import (
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// storeHealth is what the member knows of its store: whether batches and the lease are written. It
// decides when the store counts as away. It knows no clock: times come with what is noted.
type storeHealth struct {
	batches  map[int64]time.Time // that are being written, since when
	number   int64               // of the last batch
	failures int                 // of batches in a row
	failing  time.Time           // since when the lease cannot be renewed; zero = it can
	reason   string              // of the last failure
}

const (
	// manyFailures is how many batches in a row must fail before the store counts as away: a
	// connection may break.
	manyFailures = 3
	// slowBatch is how long a batch may go unwritten before the store counts as away.
	slowBatch = 5 * time.Second
)

// silentReason is the reason while the store has given none.
const silentReason = "it does not answer"

// startBatch notes that a batch is being written, and returns its number.
func (h *storeHealth) startBatch(now time.Time) int64 {
	h.number++
	h.batches[h.number] = now
	return h.number
}

// failBatch notes that a batch could not be written. It is tried again.
func (h *storeHealth) failBatch(err error) {
	h.failures++
	h.noteReason(err)
}

// endBatch notes that a batch is over. written: the store has answered it.
func (h *storeHealth) endBatch(number int64, written bool) {
	delete(h.batches, number)
	if written {
		h.failures = 0
	}
}

// recordRenewal notes how a renewal of the lease went.
func (h *storeHealth) recordRenewal(err error, now time.Time) {
	switch {
	case err == nil:
		h.failing = time.Time{}
		return
	case h.failing.IsZero():
		h.failing = now
	}
	h.noteReason(err)
}

func (h *storeHealth) noteReason(err error) {
	if h.reason = persistence.ReasonOf(err); h.reason == "" {
		h.reason = silentReason
	}
}

// isAway reports whether the store counts as away, and why. held: the member has its lease.
func (h *storeHealth) isAway(now time.Time, held bool) (reason string, away bool) {
	slow := false
	for _, since := range h.batches {
		slow = slow || now.Sub(since) >= slowBatch
	}
	if !slow && held && h.failures < manyFailures {
		return "", false
	}
	if h.failures == 0 && h.failing.IsZero() {
		return silentReason, true // what failed before is over
	}
	return h.reason, true
}

// watchdog keeps the storeHealth of a member, and has those hear of a change that wait for the
// store.
type watchdog struct {
	m      *Member
	mu     sync.Mutex
	health storeHealth
	reason string        // why the store is away; "" = it is not
	since  time.Time     // when it went away
	gone   chan struct{} // closed while the store is away
}

func newWatchdog(m *Member) *watchdog {
	return &watchdog{m: m, health: storeHealth{batches: map[int64]time.Time{}}, gone: make(chan struct{})}
}

// updateHealth changes what is known of the store, and looks at what follows.
func (w *watchdog) updateHealth(change func(h *storeHealth, now time.Time)) {
	now, held, over := w.m.cfg.Host.Clock.Now(), w.m.lease.isHeld(), w.m.lease.hasEnded()
	w.mu.Lock()
	defer w.mu.Unlock()
	if change != nil {
		change(&w.health, now)
	}
	if over {
		return // the member has no lease any more, which is nothing about the store
	}
	reason, away := w.health.isAway(now, held)
	before := w.reason
	switch w.reason = reason; {
	case away && before == "":
		w.since = now
		close(w.gone)
		w.m.log.Error("the store is not available: the member refuses what it would have to store", "reason", reason)
	case away && before != reason:
		w.m.log.Error("the store is still not available", "reason", reason)
	case !away && before != "":
		w.gone = make(chan struct{})
		w.m.log.Info("the store is available again", "after", now.Sub(w.since))
	}
}

// checkHealth has a change noticed that comes with time alone.
func (w *watchdog) checkHealth() { w.updateHealth(nil) }

// checkHealthIn looks after a while, unless stop is called before.
func (w *watchdog) checkHealthIn(d time.Duration) (stop func() bool) {
	return w.m.cfg.Host.Clock.AfterFunc(d, w.checkHealth)
}

// awayState returns why the store is away ("" = it is not), and what is closed when it is.
func (w *watchdog) awayState() (reason string, gone <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.gone
}

// errStoreAway says that the member cannot do its work, because the store is away. Other members
// may reach it.
func errStoreAway(reason string) error {
	return engine.Unable(flow.Errorf(flow.Busy, "the store is not available, because %s", reason))
}

// errNotBegun is the answer to what was not begun for that.
func errNotBegun(reason string) error {
	return engine.Unable(flow.Errorf(flow.Busy, "the store is not available, because %s: nothing was done; try again in a moment", reason))
}

var errNoConfirmation = errors.New("it has not said whether it was done")

// errUnknown is the answer to what was under way when the store went away.
func errUnknown(reason string) error {
	return &persistence.Outage{Reason: reason, Err: errNoConfirmation}
}
