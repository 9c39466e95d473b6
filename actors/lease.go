package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lease holds the member's right to write, and the store's time: the time from the last renewal,
// advanced by the monotonic clock. So a wrong clock on this host does no harm.
type lease struct {
	m *Member

	mu        sync.Mutex
	storeTime time.Time // the store's time …
	localTime time.Time // … at this local time …
	// … and by how much the time was ahead of it then, because the local clock had run too fast
	aheadBy      time.Duration
	renewed      time.Time // local time before the last successful renewal was sent
	generation   int64     // of the cluster; changes with its members
	lostSignal   chan struct{}
	fenced       bool
	lastRenewal  renewalRecord
	rewound      *Rewind   // why this member ended its history; nil if it did not
	givenUp      bool      // the member itself has given the lease up
	failingSince time.Time // local time since which renewals fail; zero if they do not
	soundSince   time.Time // local time since which no renewal has failed or been late
}

func (l *lease) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storeTimeAt(l.m.cfg.Host.Clock.Now())
}

// storeTimeAt returns the store's time at a local time. If the time was ahead of the store's, it
// advances at half speed until it no longer is.
func (l *lease) storeTimeAt(local time.Time) time.Time {
	passed := local.Sub(l.localTime)
	return l.storeTime.Add(passed + max(0, l.aheadBy-passed/2))
}

func (l *lease) renew(ctx context.Context) error {
	before := l.m.cfg.Host.Clock.Now()
	pulse, err := l.m.store.Renew(ctx, l.m.incarnation, l.m.cfg.Lease)
	if r := l.detectRewind(pulse, err); r != nil {
		l.endHistory(ctx, r)
		err = persistence.ErrRewound
	}
	changed, err := l.recordRenewal(before, pulse, err)
	if changed && l.m.cfg.Changed != nil {
		l.m.cfg.Changed(pulse)
	}
	return err
}

// recordRenewal stores the result of a renewal, and reports whether the cluster has changed since
// the previous one.
func (l *lease) recordRenewal(before time.Time, pulse persistence.Pulse, err error) (changed bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lostSignal == nil {
		l.lostSignal = make(chan struct{})
	}
	if errors.Is(err, persistence.ErrFenced) && !l.fenced && !l.givenUp {
		l.fenced = true
		close(l.lostSignal)
	}
	if err != nil {
		l.soundSince = time.Time{}
		return false, err
	}
	// A late renewal, more than three fifths of the lease after the last one, may have missed that
	// another member lost its lease meanwhile.
	if late := before.Sub(l.renewed) >= l.m.cfg.Lease*3/5; late || l.soundSince.IsZero() {
		l.soundSince = before
	}
	l.renewed = before
	l.lastRenewal.recordPulse(pulse)
	l.setStoreTime(before, pulse.Now)
	// the first renewal brings no news
	changed = l.generation != 0 && l.generation != pulse.Generation
	l.generation = pulse.Generation
	l.m.format.Store(int64(pulse.Format))
	return changed, nil
}

// setStoreTime takes the time that the store returned, measured between request and answer. Time
// must not run backwards for tasks: it steps back only if the difference is large.
func (l *lease) setStoreTime(before, store time.Time) {
	local := l.m.cfg.Host.Clock.Now()
	latest, current := store.Add(local.Sub(before)), l.storeTimeAt(local)
	first := l.storeTime.IsZero()
	l.storeTime, l.localTime, l.aheadBy = store, local, 0
	switch beyond := current.Sub(latest); {
	case first || current.Before(store) || beyond >= time.Second:
	case beyond > 0:
		l.storeTime, l.aheadBy = latest, beyond
	default:
		l.storeTime = current
	}
}

// isHeld reports whether no other member can have the lease. On a store that is locked, the lease
// is held even after it expires, unless the store fails.
func (l *lease) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := l.m.cfg.Host.Clock.Now().Sub(l.renewed) < l.m.cfg.Lease
	return !l.fenced && (runs || l.m.store.Locked() && l.failingSince.IsZero())
}

// heldFor returns how long the lease has been held without a failed or late renewal.
func (l *lease) heldFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.m.cfg.Host.Clock.Now()
	if l.soundSince.IsZero() || l.fenced || now.Sub(l.renewed) >= l.m.cfg.Lease {
		return 0
	}
	return now.Sub(l.soundSince)
}

// remainingTime returns how long the lease still runs, as far as this member knows.
func (l *lease) remainingTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.givenUp {
		return 0
	}
	return max(0, l.m.cfg.Lease-l.m.cfg.Host.Clock.Now().Sub(l.renewed))
}

func (l *lease) lostChannel() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostSignal
}

// markGivenUp records that the member gives up its lease itself, so that the missing lease is no
// error afterwards.
func (l *lease) markGivenUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = true
}

func (l *lease) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.givenUp || l.fenced
}

// maxRenewPause is the longest pause between two renewals. A renewal is how a member learns that
// others joined or left, however long its lease is.
const maxRenewPause = time.Second

// keepRenewing renews five times per lease, and at least once a second, until the member ends.
func (l *lease) keepRenewing() {
	every := min(l.m.cfg.Lease/5, maxRenewPause)
	var again func()
	again = func() {
		l.m.runBackground(func() {
			ctx, cancel := l.renewContext()
			defer cancel()
			l.logRenewal(l.renewOnce(ctx))
			if !l.hasEnded() && l.m.ctx.Err() == nil {
				l.m.cfg.Host.Clock.AfterFunc(every, again)
			}
		})
	}
	l.m.cfg.Host.Clock.AfterFunc(every, again)
}

// renewOnce renews once. It updates the member's view of its store's health, also if the lease
// expires meanwhile.
func (l *lease) renewOnce(ctx context.Context) error {
	defer l.m.watchdog.checkHealthIn(max(l.remainingTime(), 0))()
	err := l.renew(ctx)
	if l.hasEnded() || l.m.ctx.Err() != nil {
		return err
	}
	now := l.m.cfg.Host.Clock.Now()
	before := l.failedSince()
	l.m.watchdog.updateHealth(func(h *storeHealth, _ time.Time) { h.recordRenewal(err, now) })
	if err == nil && !before.IsZero() && now.Sub(before) >= l.m.cfg.Lease {
		l.m.committer.cancelCallsBefore(before)
	}
	return err
}

// failedSince returns the time since which renewals have failed; zero if the last one succeeded.
func (l *lease) failedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failingSince
}

// renewContext returns a context that bounds a renewal. If other members can take the lease, it
// leaves time for a second try, because the first request may be lost.
func (l *lease) renewContext() (context.Context, context.CancelFunc) {
	if l.m.store.Locked() {
		return context.WithCancel(l.m.ctx)
	}
	return context.WithTimeout(l.m.ctx, l.m.cfg.Lease*2/5)
}

// logRenewal logs what a renewal changed. Only keepRenewing calls it, one renewal after another.
func (l *lease) logRenewal(err error) {
	now := l.m.cfg.Host.Clock.Now()
	before := l.recordOutcome(err, now)
	switch failing := !before.IsZero(); {
	case errors.Is(err, persistence.ErrFenced):
		if l.m.Rewound() != nil {
			l.logRewind()
		} else if isClosed(l.lostChannel()) {
			l.m.log.Error("the member was fenced off, since its lease had run out: it ends, others do its work", "member", l.m.cfg.Name)
		}
	case err != nil && !failing && l.m.ctx.Err() == nil:
		l.m.log.Warn("the lease could not be renewed: trying on", "error", err)
	case err == nil && failing:
		l.m.log.Info("the lease is renewed again", "after", now.Sub(before))
	}
}

// recordOutcome stores whether a renewal failed. It returns the time since which previous renewals
// failed; zero if they did not.
func (l *lease) recordOutcome(err error, now time.Time) (before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.failingSince
	switch {
	case err == nil:
		l.failingSince = time.Time{}
	case before.IsZero():
		l.failingSince = now
	}
	return before
}
