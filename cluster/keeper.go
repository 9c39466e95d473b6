package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Local is the member whose shards are kept.
type Local interface {
	Incarnation() string
	// Held is for how long the member has held its lease without trouble: each renewal succeeded,
	// and none came late.
	Held() time.Duration
	// Gain says that it owns shards from now on.
	Gain(shards []int)
	// Lose hands shards over: it returns when nothing of them is in memory or on its way to the
	// store. After an error, shards may be gained or lost again.
	Lose(ctx context.Context, shards []int) error
	// Gone says that an incarnation has left in order, or was fenced.
	Gone(incarnation string, left bool)
}

// KeeperConfig is what a keeper works with.
type KeeperConfig struct {
	Store persistence.Members
	Local Local
	TTL   time.Duration // of leases. 0 = DefaultTTL
	// Hints say that it is worth looking, as those of Gossip do. nil = none.
	Hints <-chan struct{}
	// Announce is called when something was changed that others may wait for. nil = nobody is told.
	Announce func()
	// Log gets what people should know. nil = slog.Default().
	Log  *slog.Logger
	Host host.Host
}

// DefaultTTL is how long a lease lives.
const DefaultTTL = 2 * time.Second

// Keeper keeps a member's part of the cluster: it looks at the store, does what Decide says, and
// tells the member which shards it owns. All methods are safe for concurrent use.
type Keeper struct {
	cfg          KeeperConfig
	me           string
	wake         chan struct{} // something has changed
	lookRequests chan struct{} // somebody wants to know whether something has
	ended        chan struct{}
	work         host.Group
	view         atomic.Pointer[View]
	leaving      atomic.Bool // it was asked to: that the member lives no longer is no surprise

	metrics *keeperMetrics

	mu          sync.Mutex
	viewChanged chan struct{} // closed when there is a view of another generation
	viewReadAt  time.Time     // when the store was asked for the view

	// Of the loop alone:
	held             map[int]bool   // shards that the member owns, also those that it is handing over
	handing          *shardHandover // what is being handed over; nil = nothing
	handedOver       []int          // shards that were handed over, to be released …
	began            time.Time      // … and when that began
	portion          int            // how many are handed over at once
	reportedGone     map[string]bool
	fenced           map[string]bool // by this member
	lookedAt         time.Time
	handoverFailedAt time.Time // when a handover failed last
	clock            storeClock
	failing          bool
}

// NewKeeper is for a member that has joined. It does nothing until Run.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Announce == nil {
		cfg.Announce = func() {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	k := &Keeper{
		cfg: cfg, me: cfg.Local.Incarnation(),
		wake: make(chan struct{}, 1), lookRequests: make(chan struct{}, 1), ended: make(chan struct{}), viewChanged: make(chan struct{}),
		held: map[int]bool{}, reportedGone: map[string]bool{}, fenced: map[string]bool{}, metrics: newKeeperMetrics(), viewReadAt: cfg.Host.Now(), portion: leastPortion,
	}
	k.work.Host = &k.cfg.Host
	k.view.Store(noView())
	return k
}

// Run keeps until ctx ends or the member has left (nil), or the member was fenced
// (persistence.ErrFenced). It may be called once.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer close(k.ended)
	defer k.work.Wait()
	defer cancel()
	for {
		again, err := k.reconcileShards(ctx)
		fenced := errors.Is(err, persistence.ErrFenced)
		if ctx.Err() != nil || fenced && k.leaving.Load() {
			return nil
		}
		if fenced {
			return fmt.Errorf("cluster: member %s: %w", k.me, err)
		}
		k.logStoreState(err)
		k.waitForWork(ctx, again)
	}
}

// logStoreState logs that the store fails, and that it does no longer.
func (k *Keeper) logStoreState(err error) {
	switch {
	case err != nil && !k.failing:
		k.cfg.Log.Warn("the members and their shards cannot be looked at, or not changed: trying on", "error", err)
	case err == nil && k.failing:
		k.cfg.Log.Info("the members and their shards can be looked at and changed again")
	}
	k.failing = err != nil
}

// reconcileShards looks and acts until there is nothing left to do, and says when to look again.
func (k *Keeper) reconcileShards(ctx context.Context) (again time.Duration, err error) {
	for {
		changed, again, err := k.reconcileOnce(ctx)
		if changed {
			k.cfg.Announce()
		}
		if err != nil {
			return unsettledInterval, err
		}
		if !changed {
			return again, nil
		}
	}
}

// reconcileOnce looks once. What it does is in an order in which nothing is owned twice and nothing
// told too late: what was handed over is released before the store is read, so that it is not taken
// for this member's; the member hears who has gone, and how, before the view lacks them, and the
// view is there before it gains anything; what was claimed is gained with the next one. Fencing
// comes last: it may have to wait.
func (k *Keeper) reconcileOnce(ctx context.Context) (changed bool, again time.Duration, err error) {
	if err := k.releaseShards(ctx); err != nil {
		return false, 0, err
	}
	v, err := k.readView(ctx)
	if err != nil {
		return false, 0, err
	}
	k.reportGained(v.Shards(k.me))
	foreign := k.foreignShards(v)
	steps := Decide(v, Self{k.me, k.cfg.TTL, k.isSteady()})
	claimed, err := k.claimShards(ctx, steps.Claim)
	if err != nil {
		return false, 0, err
	}
	k.startHandover(ctx, append(steps.Hand, foreign...))
	fenced, err := k.fenceMembers(ctx, v, steps.Fence)
	return claimed || fenced, steps.Again, err
}

// isSteady reports whether the member has held its lease for a full time to live, by a clock of the
// store that ran evenly: whoever did not renew his lease in that time could have.
func (k *Keeper) isSteady() bool {
	return k.cfg.Local.Held() >= k.cfg.TTL && k.clock.evenFor(k.cfg.Host.Now()) >= k.cfg.TTL
}

// readView reads the store and publishes what it says.
func (k *Keeper) readView(ctx context.Context) (*View, error) {
	ctx, cancel := k.cfg.Host.Within(ctx, k.cfg.TTL)
	defer cancel()
	k.lookedAt = k.cfg.Host.Now()
	c, err := k.cfg.Store.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who owns what: %w", err)
	}
	v := NewView(c)
	k.clock.recordReading(v.Now, k.lookedAt, k.cfg.Host.Now(), k.cfg.TTL)
	if !v.Lives(k.me) {
		return nil, persistence.ErrFenced
	}
	k.reportGone(v)
	k.logMembership(k.Current(), v)
	k.publishView(v)
	return v, nil
}

func (k *Keeper) publishView(v *View) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.view.Load()
	k.viewReadAt = k.lookedAt
	k.view.Store(v)
	if v.Generation != before.Generation {
		close(k.viewChanged)
		k.viewChanged = make(chan struct{})
	}
}

// reportGone tells the member who has gone, once each. Somebody may have come and gone between two
// looks.
func (k *Keeper) reportGone(v *View) {
	gone := map[string]bool{}
	for _, m := range v.Members {
		if m.FencedAt == 0 {
			continue
		}
		gone[m.Incarnation] = true
		if !k.reportedGone[m.Incarnation] {
			k.cfg.Local.Gone(m.Incarnation, m.Left())
		}
	}
	k.reportedGone = gone
	maps.DeleteFunc(k.fenced, func(incarnation string, _ bool) bool { // it is forgotten, or is yet to be seen as gone
		_, known := v.Member(incarnation)
		return !known
	})
}

// reportGained tells the member what it owns that it did not know of.
func (k *Keeper) reportGained(shards []int) {
	gained := slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return k.held[shard] })
	if len(gained) == 0 {
		return
	}
	for _, shard := range gained {
		k.held[shard] = true
	}
	k.cfg.Local.Gain(gained)
	k.metrics.taken.Add(float64(len(gained)))
	k.cfg.Log.Info("shards were taken up", "shards", len(gained), "all", len(k.held))
}

// fenceMembers fences whom it can.
func (k *Keeper) fenceMembers(ctx context.Context, v *View, members []string) (some bool, failed error) {
	ctx, cancel := k.cfg.Host.Within(ctx, k.cfg.TTL)
	defer cancel()
	for _, incarnation := range members {
		fenced, err := k.cfg.Store.Fence(ctx, incarnation)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("fence %s: %w", incarnation, err))
		}
		if fenced {
			m, _ := v.Member(incarnation)
			k.cfg.Log.Warn("a member was fenced: its lease has run out", "member", m.Name, "incarnation", incarnation)
			k.fenced[incarnation] = true
			k.metrics.fenced.Inc()
			some = true
		}
	}
	return some, failed
}

func (k *Keeper) claimShards(ctx context.Context, shards []int) (bool, error) {
	if len(shards) == 0 {
		return false, nil
	}
	ctx, cancel := k.cfg.Host.Within(ctx, k.cfg.TTL)
	defer cancel()
	owned, err := k.cfg.Store.Claim(ctx, k.me, shards)
	if err != nil {
		return false, fmt.Errorf("claim %d shards: %w", len(shards), err)
	}
	return len(owned) > 0, nil
}

// Current is the newest view; that of nobody and nothing before the store was read for the first
// time.
func (k *Keeper) Current() *View { return k.view.Load() }

// viewAge is how old the newest view is; before there is one, how long ago the keeper was made.
func (k *Keeper) viewAge() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg.Host.Now().Sub(k.viewReadAt)
}

// Changed is closed when there is a view of another generation than that: a later one, unless the
// store was put back.
func (k *Keeper) Changed(generation int64) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.view.Load().Generation != generation {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return k.viewChanged
}

// Look has the keeper look soon, for somebody who hopes for a newer view. It does not wait.
func (k *Keeper) Look() { sendToken(k.lookRequests) }

// Pulse is what a renewal of the lease told.
func (k *Keeper) Pulse(p persistence.Pulse) {
	if p.Generation != k.Current().Generation {
		sendToken(k.wake)
	}
}
