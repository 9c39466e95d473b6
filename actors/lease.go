package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// lease keeps the member's right to write, and the store's time with it: what the store said at the
// last renewal, carried on by the monotonic clock. A wrong clock on this host does no harm.
type lease struct {
	m *Member

	mu           sync.Mutex
	storeTime    time.Time     // the store's time …
	localTime    time.Time     // … when this was the local one …
	aheadBy      time.Duration // … and by how much it was ahead of that here, because the local clock had run too fast
	renewed      time.Time     // local time before the last renewal was sent
	generation   int64         // of the cluster
	lostSignal   chan struct{}
	fenced       bool
	lastRenewal  renewalRecord
	rewound      *Rewind   // why the member was fenced; nil = another one has fenced it, or it was not
	givenUp      bool      // the member has given it up by itself
	failingSince time.Time // local time since when it cannot be renewed; zero = it can
	soundSince   time.Time // local time since when no renewal has failed or come late
}

func (l *lease) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storeTimeAt(l.m.cfg.Host.Clock.Now())
}

// storeTimeAt is the store's time at a local one. Where it was ahead it goes half as fast until it
// is not.
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

// recordRenewal notes what a renewal told, and says whether the cluster has changed since the one
// before.
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
	// Renewals that come later than every third time may have missed that somebody else lost his
	// lease meanwhile.
	if late := before.Sub(l.renewed) >= l.m.cfg.Lease*3/5; late || l.soundSince.IsZero() {
		l.soundSince = before
	}
	l.renewed = before
	l.lastRenewal.recordPulse(pulse)
	l.setStoreTime(before, pulse.Now)
	changed = l.generation != 0 && l.generation != pulse.Generation // the first one tells nobody anything new
	l.generation = pulse.Generation
	l.m.format.Store(int64(pulse.Format))
	return changed, nil
}

// setStoreTime takes the time that the store told between question and answer. Time must not run
// backwards for tasks: a step back is taken only when it is large.
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

// isHeld reports whether nobody else can have the lease. On a store that is locked it holds also
// when its time is over, unless the store fails.
func (l *lease) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := l.m.cfg.Host.Clock.Now().Sub(l.renewed) < l.m.cfg.Lease
	return !l.fenced && (runs || l.m.store.Locked() && l.failingSince.IsZero())
}

// heldFor is for how long the lease has been held without trouble.
func (l *lease) heldFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.m.cfg.Host.Clock.Now()
	if l.soundSince.IsZero() || l.fenced || now.Sub(l.renewed) >= l.m.cfg.Lease {
		return 0
	}
	return now.Sub(l.soundSince)
}

// remainingTime is what is left of the lease as far as this member knows.
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

// markGivenUp says that the member gives its lease up: that it has none from then on is no
// surprise.
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

// maxRenewPause is between two renewals at most: with a renewal a member hears that others came or
// went, however long its lease is.
const maxRenewPause = time.Second

// keepRenewing renews five times per lease, and each second at least, until the member goes.
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

// renewOnce renews once, and has the member notice what that tells about its store, or that the
// lease runs out meanwhile.
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

// failedSince returns since when the lease could not be renewed before the last try; zero = it
// could.
func (l *lease) failedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failingSince
}

// renewContext is how long a renewal may take: where others can get the lease, so long that there
// is time for another one, because what this one has sent may be lost.
func (l *lease) renewContext() (context.Context, context.CancelFunc) {
	if l.m.store.Locked() {
		return context.WithCancel(l.m.ctx)
	}
	return context.WithTimeout(l.m.ctx, l.m.cfg.Lease*2/5)
}

// logRenewal logs what a renewal changed. Only keep calls it, one renewal after the other.
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

// recordOutcome notes whether a renewal failed, and tells since when those before it did; zero =
// they did not.
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
