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

	mu         sync.Mutex
	store      time.Time     // the store's time …
	local      time.Time     // … when this was the local one …
	ahead      time.Duration // … and by how much it was ahead of that here, because the local clock had run too fast
	renewed    time.Time     // local time before the last renewal was sent
	generation int64         // of the cluster
	gone       chan struct{}
	fenced     bool
	past       past
	rewound    *Rewind   // why the member was fenced; nil = another one has fenced it, or it was not
	left       bool      // the member has given it up by itself
	failing    time.Time // local time since when it cannot be renewed; zero = it can
	sound      time.Time // local time since when no renewal has failed or come late
}

func (l *lease) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(l.m.cfg.Host.Clock.Now())
}

// at is the store's time at a local one. Where it was ahead it goes half as fast until it is not.
func (l *lease) at(local time.Time) time.Time {
	passed := local.Sub(l.local)
	return l.store.Add(passed + max(0, l.ahead-passed/2))
}

func (l *lease) renew(ctx context.Context) error {
	before := l.m.cfg.Host.Clock.Now()
	pulse, err := l.m.store.Renew(ctx, l.m.incarnation, l.m.cfg.Lease)
	if r := l.rewind(pulse, err); r != nil {
		l.leaveHistory(ctx, r)
		err = persistence.ErrRewound
	}
	changed, err := l.take(before, pulse, err)
	if changed && l.m.cfg.Changed != nil {
		l.m.cfg.Changed(pulse)
	}
	return err
}

// take notes what a renewal told, and says whether the cluster has changed since the one before.
func (l *lease) take(before time.Time, pulse persistence.Pulse, err error) (changed bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == nil {
		l.gone = make(chan struct{})
	}
	if errors.Is(err, persistence.ErrFenced) && !l.fenced && !l.left {
		l.fenced = true
		close(l.gone)
	}
	if err != nil {
		l.sound = time.Time{}
		return false, err
	}
	// Renewals that come later than every third time may have missed that somebody else lost his lease meanwhile.
	if late := before.Sub(l.renewed) >= l.m.cfg.Lease*3/5; late || l.sound.IsZero() {
		l.sound = before
	}
	l.renewed = before
	l.past.remember(pulse)
	l.set(before, pulse.Now)
	changed = l.generation != 0 && l.generation != pulse.Generation // the first one tells nobody anything new
	l.generation = pulse.Generation
	l.m.format.Store(int64(pulse.Format))
	return changed, nil
}

// set takes the time that the store told between question and answer. Time must not run backwards for tasks: a step back is
// taken only when it is large.
func (l *lease) set(before, store time.Time) {
	local := l.m.cfg.Host.Clock.Now()
	latest, current := store.Add(local.Sub(before)), l.at(local)
	first := l.store.IsZero()
	l.store, l.local, l.ahead = store, local, 0
	switch beyond := current.Sub(latest); {
	case first || current.Before(store) || beyond >= time.Second:
	case beyond > 0:
		l.store, l.ahead = latest, beyond
	default:
		l.store = current
	}
}

// held says whether nobody else can have the lease. On a store that is locked it holds also when its time is
// over, unless the store fails.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := l.m.cfg.Host.Clock.Now().Sub(l.renewed) < l.m.cfg.Lease
	return !l.fenced && (runs || l.m.store.Locked() && l.failing.IsZero())
}

// heldFor is for how long the lease has been held without trouble.
func (l *lease) heldFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.m.cfg.Host.Clock.Now()
	if l.sound.IsZero() || l.fenced || now.Sub(l.renewed) >= l.m.cfg.Lease {
		return 0
	}
	return now.Sub(l.sound)
}

// remains is what is left of the lease as far as this member knows.
func (l *lease) remains() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.left {
		return 0
	}
	return max(0, l.m.cfg.Lease-l.m.cfg.Host.Clock.Now().Sub(l.renewed))
}

func (l *lease) lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// leave says that the member gives its lease up: that it has none from then on is no surprise.
func (l *lease) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
}

func (l *lease) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left || l.fenced
}

// longestPause is between two renewals at most: with a renewal a member hears that others came or went, however long its lease is.
const longestPause = time.Second

// keep renews five times per lease, and each second at least, until the member goes.
func (l *lease) keep() {
	every := min(l.m.cfg.Lease/5, longestPause)
	var again func()
	again = func() {
		l.m.background(func() {
			ctx, cancel := l.patience()
			defer cancel()
			l.tell(l.attempt(ctx))
			if !l.over() && l.m.ctx.Err() == nil {
				l.m.cfg.Host.Clock.AfterFunc(every, again)
			}
		})
	}
	l.m.cfg.Host.Clock.AfterFunc(every, again)
}

// attempt renews once, and has the member notice what that tells about its store, or that the lease runs out meanwhile.
func (l *lease) attempt(ctx context.Context) error {
	defer l.m.watchdog.lookIn(max(l.remains(), 0))()
	err := l.renew(ctx)
	if l.over() || l.m.ctx.Err() != nil {
		return err
	}
	now := l.m.cfg.Host.Clock.Now()
	before := l.failedSince()
	l.m.watchdog.note(func(h *storeHealth, _ time.Time) { h.renew(err, now) })
	if err == nil && !before.IsZero() && now.Sub(before) >= l.m.cfg.Lease {
		l.m.committer.drop(before)
	}
	return err
}

// failedSince returns since when the lease could not be renewed before the last try; zero = it could.
func (l *lease) failedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// patience is how long a renewal may take: where others can get the lease, so long that there is time for another one,
// because what this one has sent may be lost.
func (l *lease) patience() (context.Context, context.CancelFunc) {
	if l.m.store.Locked() {
		return context.WithCancel(l.m.ctx)
	}
	return context.WithTimeout(l.m.ctx, l.m.cfg.Lease*2/5)
}

// tell logs what a renewal changed. Only keep calls it, one renewal after the other.
func (l *lease) tell(err error) {
	now := l.m.cfg.Host.Clock.Now()
	before := l.fails(err, now)
	switch failing := !before.IsZero(); {
	case errors.Is(err, persistence.ErrFenced):
		if l.m.Rewound() != nil {
			l.sayRewound()
		} else if closed(l.lost()) {
			l.m.log.Error("the member was fenced off, since its lease had run out: it ends, others do its work", "member", l.m.cfg.Name)
		}
	case err != nil && !failing && l.m.ctx.Err() == nil:
		l.m.log.Warn("the lease could not be renewed: trying on", "error", err)
	case err == nil && failing:
		l.m.log.Info("the lease is renewed again", "after", now.Sub(before))
	}
}

// fails notes whether a renewal failed, and tells since when those before it did; zero = they did not.
func (l *lease) fails(err error, now time.Time) (before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.failing
	switch {
	case err == nil:
		l.failing = time.Time{}
	case before.IsZero():
		l.failing = now
	}
	return before
}
