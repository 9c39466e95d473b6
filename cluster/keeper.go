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

// Local is the member for which the keeper manages shards.
type Local interface {
	Incarnation() string
	// Held returns how long the member has held its lease without a failed or late renewal.
	Held() time.Duration
	// Gain notifies the member that it now owns shards.
	Gain(shards []int)
	// Lose hands shards over. It returns when none of their tasks is in memory or being written.
	// After an error, the caller may repeat Lose, or call Gain.
	Lose(ctx context.Context, shards []int) error
	// Gone notifies the member that an incarnation has left in order, or was fenced.
	Gone(incarnation string, left bool)
}

// KeeperConfig configures a Keeper.
type KeeperConfig struct {
	Store persistence.Members
	Local Local
	TTL   time.Duration // TTL of leases; 0 means DefaultTTL
	// Hints are signals to read the store, such as those of Gossip; nil means none.
	Hints <-chan struct{}
	// Announce is called after a change for which others may wait; nil means no announcements.
	Announce func()
	// Log receives messages for operators; nil means slog.Default().
	Log  *slog.Logger
	Host host.Host
}

// DefaultTTL is the default TTL of leases.
const DefaultTTL = 2 * time.Second

// Keeper manages a member's part of the cluster. It reads the store, carries out the steps of
// Decide, and notifies the member of gained and lost shards. All methods are safe for concurrent
// use.
type Keeper struct {
	cfg          KeeperConfig
	me           string
	wake         chan struct{} // signals a change
	lookRequests chan struct{} // signals that a caller needs a newer view
	ended        chan struct{}
	work         host.Group
	view         atomic.Pointer[View]
	leaving      atomic.Bool // Leave was called, so the end of the member is expected

	metrics *keeperMetrics

	mu          sync.Mutex
	viewChanged chan struct{} // closed when a view of another generation is published
	viewReadAt  time.Time     // time of the request that read the view

	// Only the loop uses the fields below. held contains the shards that the member owns, including
	// those being handed over.
	held             map[int]bool
	handing          *shardHandover // handover in progress; nil means none
	handedOver       []int          // shards that were handed over and must still be released
	began            time.Time      // start of the last handover
	portion          int            // number of shards to hand over at once
	reportedGone     map[string]bool
	fenced           map[string]bool // incarnations that this member has fenced
	lookedAt         time.Time
	handoverFailedAt time.Time // time of the last failed handover
	clock            storeClock
	failing          bool
}

// NewKeeper returns a keeper for a member that has joined. It does nothing before Run.
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
		held: map[int]bool{}, reportedGone: map[string]bool{}, fenced: map[string]bool{},
		metrics: newKeeperMetrics(), viewReadAt: cfg.Host.Now(), portion: leastPortion,
	}
	k.work.Host = &k.cfg.Host
	k.view.Store(noView())
	return k
}

// Run manages the member's shards. It returns nil when ctx ends or the member has left, and
// persistence.ErrFenced when the member was fenced. Call it once.
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

// logStoreState logs when the store starts and stops failing.
func (k *Keeper) logStoreState(err error) {
	switch {
	case err != nil && !k.failing:
		k.cfg.Log.Warn("reading or updating cluster members failed, retrying", "error", err)
	case err == nil && k.failing:
		k.cfg.Log.Info("reading and updating cluster members works again")
	}
	k.failing = err != nil
}

// reconcileShards carries out steps until none is left. again is when to check next.
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

// reconcileOnce reads the store once and acts on it. The order of its steps makes sure that no
// shard has two owners and no event comes too late:
//
//   - It releases handed-over shards before it reads the store, so that they do not count as this
//     member's.
//   - It reports members that are gone before a view without them is published, and publishes the
//     view before it reports gains.
//   - Claimed shards are gained with the next view.
//   - It fences last, because a fence may have to wait.
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

// isSteady reports whether the member has held its lease for a full TTL while the store's clock was
// not adjusted. Any other live member could have renewed its lease in that time.
func (k *Keeper) isSteady() bool {
	return k.cfg.Local.Held() >= k.cfg.TTL && k.clock.evenFor(k.cfg.Host.Now()) >= k.cfg.TTL
}

// readView reads the store and publishes the view.
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

// reportGone notifies the local member once of each member that is gone. A member may come and go
// between two views.
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
	// the store has deleted the member, or a later view shows that it is gone
	maps.DeleteFunc(k.fenced, func(incarnation string, _ bool) bool {
		_, known := v.Member(incarnation)
		return !known
	})
}

// reportGained notifies the local member of newly owned shards.
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
	k.cfg.Log.Info("shards acquired", "shards", len(gained), "owned", len(k.held))
}

// fenceMembers fences the given members if their leases have expired. some reports whether any was
// fenced.
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
			k.cfg.Log.Warn("member fenced: its lease expired", "member", m.Name, "incarnation", incarnation)
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

// Current returns the newest view, which is empty before the first read of the store.
func (k *Keeper) Current() *View { return k.view.Load() }

// viewAge returns the age of the newest view, or the age of the keeper before the first view.
func (k *Keeper) viewAge() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg.Host.Now().Sub(k.viewReadAt)
}

// Changed returns a channel that is closed when the generation of the view differs from the given
// one. The new view is a later one, unless the store went back in time.
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

// Look makes the keeper read the store soon, without waiting for it.
func (k *Keeper) Look() { sendToken(k.lookRequests) }

// Pulse passes the result of a lease renewal to the keeper, which reads the store if the generation
// has changed.
func (k *Keeper) Pulse(p persistence.Pulse) {
	if p.Generation != k.Current().Generation {
		sendToken(k.wake)
	}
}
