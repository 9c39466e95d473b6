package lease

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// storeHealth decides from batches and lease renewals whether the store is available. It has no
// clock, because the events carry their times.
type storeHealth struct {
	batches  map[int64]time.Time // start times of the batches being written, by number
	number   int64               // number of the last batch
	failures int                 // consecutive failures of batches
	failing  time.Time           // time since which the lease cannot be renewed; zero if it can
	reason   string              // error of the last failure
}

const (
	// manyFailures is the number of consecutive failed batches after which the store counts as
	// unavailable. A broken connection may cause fewer failures.
	manyFailures = 3
	// slowBatch is the time without an answer after which the store counts as unavailable.
	slowBatch = 5 * time.Second
)

// silentReason is the reason for unavailability while the store has returned no error.
const silentReason = "it does not answer"

// startBatch records the start of a batch, and returns its number.
func (h *storeHealth) startBatch(now time.Time) int64 {
	h.number++
	h.batches[h.number] = now
	return h.number
}

// failBatch records a failed try of a batch, which is retried.
func (h *storeHealth) failBatch(err error) {
	h.failures++
	h.noteReason(err)
}

// endBatch records the end of a batch. written reports whether the store has answered the batch.
func (h *storeHealth) endBatch(number int64, written bool) {
	delete(h.batches, number)
	if written {
		h.failures = 0
	}
}

// recordRenewal records the result of a lease renewal.
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

// isAway reports whether the store counts as unavailable, and why. held reports whether the member
// has its lease.
func (h *storeHealth) isAway(now time.Time, held bool) (reason string, away bool) {
	slow := false
	for _, since := range h.batches {
		slow = slow || now.Sub(since) >= slowBatch
	}
	if !slow && held && h.failures < manyFailures {
		return "", false
	}
	if h.failures == 0 && h.failing.IsZero() {
		return silentReason, true // an earlier error is not the reason anymore
	}
	return h.reason, true
}

// watchdog keeps the storeHealth of a member, and notifies goroutines that wait for the store.
type watchdog struct {
	lease  *Lease
	mu     sync.Mutex
	health storeHealth
	reason string        // why the store is unavailable; "" if it is available
	since  time.Time     // when the store became unavailable
	gone   chan struct{} // closed while the store is unavailable
}

func newWatchdog(l *Lease) *watchdog {
	return &watchdog{lease: l, health: storeHealth{batches: map[int64]time.Time{}}, gone: make(chan struct{})}
}

// updateHealth applies a change to the store's health. If the availability has changed, it logs
// that and notifies waiting goroutines.
func (w *watchdog) updateHealth(change func(h *storeHealth, now time.Time)) {
	now, held, over := w.lease.work.Clock.Now(), w.lease.IsHeld(), w.lease.hasEnded()
	w.mu.Lock()
	defer w.mu.Unlock()
	if change != nil {
		change(&w.health, now)
	}
	if over {
		return // a missing lease of an ended member is no fault of the store
	}
	reason, away := w.health.isAway(now, held)
	before := w.reason
	switch w.reason = reason; {
	case away && before == "":
		w.since = now
		close(w.gone)
		w.lease.log.Error("store is unavailable: requests that need it are rejected", "reason", reason)
	case away && before != reason:
		w.lease.log.Error("store is still unavailable", "reason", reason)
	case !away && before != "":
		w.gone = make(chan struct{})
		w.lease.log.Info("store is available again", "downtime", now.Sub(w.since))
	}
}

// StartBatch records the start of a batch that is written to the store, and returns its number.
func (w *watchdog) StartBatch() (number int64) {
	w.updateHealth(func(h *storeHealth, now time.Time) { number = h.startBatch(now) })
	return number
}

// EndBatch records the end of a batch. written reports whether the store has answered the batch.
func (w *watchdog) EndBatch(number int64, written bool) {
	w.updateHealth(func(h *storeHealth, _ time.Time) { h.endBatch(number, written) })
}

// FailBatch records a failed try of a batch.
func (w *watchdog) FailBatch(err error) {
	w.updateHealth(func(h *storeHealth, _ time.Time) { h.failBatch(err) })
}

// CheckSlowBatch checks the health when a batch counts as slow, unless stop is called before.
func (w *watchdog) CheckSlowBatch() (stop func() bool) { return w.checkHealthIn(slowBatch) }

// CheckHealth updates the health for changes by time alone.
func (w *watchdog) CheckHealth() { w.updateHealth(nil) }

// checkHealthIn checks the health after d, unless stop is called before.
func (w *watchdog) checkHealthIn(d time.Duration) (stop func() bool) {
	return w.lease.work.After(d, w.CheckHealth)
}

// AwayState returns why the store is unavailable ("" if it is available), and a channel that is
// closed while it is unavailable.
func (w *watchdog) AwayState() (reason string, gone <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.gone
}

// NewAwayError returns the error of a member that cannot work because the store is unavailable. The
// caller may retry at another member.
func NewAwayError(reason string) error {
	return engine.Unable(flow.Errorf(flow.Busy, "the store is not available, because %s", reason))
}

var errNoConfirmation = errors.New("it has not said whether it was done")

// NewUnknownResultError returns the error for a request that was in progress when the store became
// unavailable.
func NewUnknownResultError(reason string) error {
	return &persistence.Outage{Reason: cmp.Or(reason, silentReason), Err: errNoConfirmation}
}
