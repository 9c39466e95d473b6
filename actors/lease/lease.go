// Package lease tracks the store for a member: its lease, the time of the store, outages, and a
// loss of recent state. All types are structures with locks.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Store is the part of the store that a lease needs.
type Store interface {
	Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error)
	BeginHistory(ctx context.Context, history string, kept int64) error
	Locked() bool
}

// Config configures a lease.
type Config struct {
	Store       Store
	Incarnation string
	Member      string        // name of the member, for logs
	TTL         time.Duration // how long the member may miss renewals
	Log         *slog.Logger
	// Changed is called when a renewal shows that members, or owners of shards, have changed. It
	// must not block. May be nil.
	Changed func(persistence.Pulse)
	// CancelCalls cancels the store calls that started before a time, because their connections may
	// be dead.
	CancelCalls func(before time.Time)
}

// New returns a lease that is not renewed yet. The caller calls SetWork before the first renewal.
func New(cfg Config) *Lease {
	l := &Lease{store: cfg.Store, incarnation: cfg.Incarnation, member: cfg.Member, ttl: cfg.TTL,
		log: cfg.Log, changed: cfg.Changed, cancelCalls: cfg.CancelCalls}
	l.Watchdog = newWatchdog(l)
	return l
}

// SetWork sets the background work of the member, before the first renewal.
func (l *Lease) SetWork(w *background.Work) { l.work = w }

// RowFormat returns the format of new journal rows.
func (l *Lease) RowFormat() int { return int(l.format.Load()) }

// Lease holds the member's right to write, and the time of the store. That time comes from the last
// renewal and advances by the monotonic clock. So a wrong clock of this host does no harm.
type Lease struct {
	store       Store
	incarnation string
	member      string        // name of the member, for logs
	ttl         time.Duration // how long the member may miss renewals
	work        *background.Work
	log         *slog.Logger
	Watchdog    *watchdog
	// called when a renewal shows that the cluster has changed; may be nil
	changed func(persistence.Pulse)
	// cancels the store calls that started before a time
	cancelCalls func(before time.Time)
	format      atomic.Int64 // format of new journal rows

	mu        sync.Mutex
	storeTime time.Time // time of the store at the last renewal
	localTime time.Time // local time of storeTime
	// how far the member's time was ahead of the store at localTime
	aheadBy      time.Duration
	renewed      time.Time // local time just before the last successful renewal was sent
	generation   int64     // generation of the cluster, which changes with its members
	lostSignal   chan struct{}
	fenced       bool
	lastRenewal  renewalRecord
	rewound      *Rewind   // how the store lost its recent state; nil if it did not
	givenUp      bool      // the member gave up the lease itself
	failingSince time.Time // local time of the first failed renewal; zero if the last one succeeded
	soundSince   time.Time // local time since which no renewal failed or was late
}

// Now returns the store's time.
func (l *Lease) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storeTimeAt(l.work.Clock.Now())
}

// storeTimeAt returns the time of the store at a local time. If the member's time was ahead of the
// store, it advances at half speed until both agree.
func (l *Lease) storeTimeAt(local time.Time) time.Time {
	passed := local.Sub(l.localTime)
	return l.storeTime.Add(passed + max(0, l.aheadBy-passed/2))
}

// Renew renews the lease once.
func (l *Lease) Renew(ctx context.Context) error {
	before := l.work.Clock.Now()
	pulse, err := l.store.Renew(ctx, l.incarnation, l.ttl)
	if r := l.detectRewind(pulse, err); r != nil {
		l.endHistory(ctx, r)
		err = persistence.ErrRewound
	}
	changed, err := l.recordRenewal(before, pulse, err)
	if changed && l.changed != nil {
		l.changed(pulse)
	}
	return err
}

// recordRenewal stores the result of a renewal. changed reports whether the cluster has changed
// since the previous one.
func (l *Lease) recordRenewal(before time.Time, pulse persistence.Pulse, err error) (changed bool, _ error) {
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
	// A renewal is late if it comes more than three fifths of the lease after the last one. In that
	// time, another member may have lost its lease unnoticed.
	if late := before.Sub(l.renewed) >= l.ttl*3/5; late || l.soundSince.IsZero() {
		l.soundSince = before
	}
	l.renewed = before
	l.lastRenewal.recordPulse(pulse)
	l.setStoreTime(before, pulse.Now)
	// the first renewal has no previous generation to compare with
	changed = l.generation != 0 && l.generation != pulse.Generation
	l.generation = pulse.Generation
	l.format.Store(int64(pulse.Format))
	return changed, nil
}

// setStoreTime sets the store's time to the one that a request, sent at before, has returned. Time
// steps back only for a large difference, because tasks must not see it run backwards.
func (l *Lease) setStoreTime(before, store time.Time) {
	local := l.work.Clock.Now()
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

// IsHeld reports whether no other member can have the lease. On a locked store, the lease is held
// even after it expires, unless renewals fail.
func (l *Lease) IsHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := l.work.Clock.Now().Sub(l.renewed) < l.ttl
	return !l.fenced && (runs || l.store.Locked() && l.failingSince.IsZero())
}

// HeldFor returns how long the lease has been held without a failed or late renewal.
func (l *Lease) HeldFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.work.Clock.Now()
	if l.soundSince.IsZero() || l.fenced || now.Sub(l.renewed) >= l.ttl {
		return 0
	}
	return now.Sub(l.soundSince)
}

// RemainingTime returns how long the lease still runs, as far as this member knows.
func (l *Lease) RemainingTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.givenUp {
		return 0
	}
	return max(0, l.ttl-l.work.Clock.Now().Sub(l.renewed))
}

// Lost returns a channel that is closed when the member was fenced and has to end.
func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostSignal
}

// MarkGivenUp records that the member gives up its lease, so that the missing lease is not logged
// as an error.
func (l *Lease) MarkGivenUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = true
}

func (l *Lease) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.givenUp || l.fenced
}

// maxRenewPause is the longest pause between two renewals. It is short because a member learns by
// renewals that others joined or left.
const maxRenewPause = time.Second

// KeepRenewing renews five times per lease, and at least once a second, until the member ends.
func (l *Lease) KeepRenewing() {
	every := min(l.ttl/5, maxRenewPause)
	var again func()
	again = func() {
		l.work.Run(func() {
			ctx, cancel := l.renewContext()
			defer cancel()
			l.logRenewal(l.renewOnce(ctx))
			if !l.hasEnded() && !l.work.HasEnded() {
				l.work.After(every, again)
			}
		})
	}
	l.work.After(every, again)
}

// renewOnce renews the lease once. It updates the health of the store, also when the lease expires
// during the call.
func (l *Lease) renewOnce(ctx context.Context) error {
	defer l.Watchdog.checkHealthIn(max(l.RemainingTime(), 0))()
	err := l.Renew(ctx)
	if l.hasEnded() || l.work.HasEnded() {
		return err
	}
	now := l.work.Clock.Now()
	before := l.failedSince()
	l.Watchdog.updateHealth(func(h *storeHealth, _ time.Time) { h.recordRenewal(err, now) })
	if err == nil && !before.IsZero() && now.Sub(before) >= l.ttl {
		l.cancelCalls(before)
	}
	return err
}

// failedSince returns the time since which renewals have failed; zero if the last one succeeded.
func (l *Lease) failedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failingSince
}

// renewContext returns a context that bounds a renewal. If other members can take the lease, it
// leaves time for a second try, because the first request may be lost.
func (l *Lease) renewContext() (context.Context, context.CancelFunc) {
	if l.store.Locked() {
		return context.WithCancel(l.work.Context())
	}
	return context.WithTimeout(l.work.Context(), l.ttl*2/5)
}

// logRenewal logs the changes of a renewal. Only KeepRenewing calls it, so calls do not overlap.
func (l *Lease) logRenewal(err error) {
	now := l.work.Clock.Now()
	before := l.recordOutcome(err, now)
	switch failing := !before.IsZero(); {
	case errors.Is(err, persistence.ErrFenced):
		if l.Rewound() != nil {
			l.logRewind()
		} else if host.Closed(l.Lost()) {
			l.log.Error("member was fenced because its lease expired: it stops, and other members take over", "member", l.member)
		}
	case err != nil && !failing && !l.work.HasEnded():
		l.log.Warn("renewing the lease failed, retrying", "error", err)
	case err == nil && failing:
		l.log.Info("renewing the lease works again", "downtime", now.Sub(before))
	}
}

// recordOutcome stores whether a renewal failed. It returns the time since which earlier renewals
// had failed; zero if they had not.
func (l *Lease) recordOutcome(err error, now time.Time) (before time.Time) {
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
