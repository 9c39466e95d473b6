package persistence

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Newest wraps a store with a cache of the two reads of every task start: the flow of a slug, and
// the newest published version of a flow.
//
// Changes through the wrapper are visible at once, so all users in a process share one wrapper.
// Changes by other members are visible after at most NewestAge by the clock now, and at once after
// Forget. A Locked store has no other members.
func Newest(store Store, now func() time.Time) *NewestStore {
	return &NewestStore{Store: store, now: now, locked: store.Locked(),
		flows: lru.New[*cachedRead[Flow]](maxFlowBytes), versions: lru.New[*cachedRead[Version]](maxNewestBytes)}
}

// NewestAge is how long a member may start tasks of an old version after another member has
// published a newer one. After half of that time, one caller refreshes the entry while others use
// the cached value.
const NewestAge = time.Second

// Bounds on the memory of the caches.
const (
	maxFlowBytes   = 4 << 20
	maxNewestBytes = 32 << 20
)

// NewestStore is a Store with a cache; see Newest.
type NewestStore struct {
	Store
	// Changed is called for each flow that was published, deleted or rescheduled through this
	// store, before the caller gets the result. It makes other members call Forget. nil means that
	// there are no other members.
	Changed func(ctx context.Context, flow string)

	now      func() time.Time
	locked   bool
	mu       sync.Mutex
	flows    *lru.Cache[*cachedRead[Flow]]    // by slug
	versions *lru.Cache[*cachedRead[Version]] // newest version by flow
	// number of changes; a value read while a change was in progress is not cached
	changes int
}

// cachedRead is a cached result of the store.
type cachedRead[V any] struct {
	value      *V
	at         time.Time // time of the read
	refreshing bool      // a caller is refreshing the value
}

// FindVersion returns a version of a flow. The newest version (number 0) is cached for at most
// NewestAge.
func (n *NewestStore) FindVersion(ctx context.Context, flow string, number int) (*Version, error) {
	ask := func() (*Version, error) { return n.Store.FindVersion(ctx, flow, number) }
	if number != 0 {
		return ask()
	}
	return readThrough(n, n.versions, flow, ask, func(v *Version) int {
		return len(v.ID) + len(v.FlowID) + len(v.Status) + len(v.Hash) + len(v.Definition)
	})
}

// FlowBySlug returns the flow with a slug. The result is cached for at most NewestAge.
func (n *NewestStore) FlowBySlug(ctx context.Context, slug string) (*Flow, error) {
	ask := func() (*Flow, error) { return n.Store.FlowBySlug(ctx, slug) }
	return readThrough(n, n.flows, slug, ask, func(f *Flow) int {
		return len(f.ID) + len(f.Slug) + len(f.Name) + len(f.Description)
	})
}

// readThrough returns a copy of the cached value, or reads it from the store and caches it.
func readThrough[V any](n *NewestStore, c *lru.Cache[*cachedRead[V]], key string, ask func() (*V, error), size func(*V) int) (*V, error) {
	n.mu.Lock()
	now, changes := n.now(), n.changes
	known, ok := c.Get(key)
	ok = ok && !n.isDue(known.at, &known.refreshing, now)
	n.mu.Unlock()
	if !ok {
		value, err := ask()
		if err != nil {
			return nil, err
		}
		known = &cachedRead[V]{value: value, at: now}
		n.mu.Lock()
		if changes == n.changes {
			c.Put(key, known, size(value))
		}
		n.mu.Unlock()
	}
	own := *known.value
	return &own, nil
}

// isDue reports whether the caller must refresh a value that was read at the given time. It sets
// again, so that other callers do not refresh the value too.
func (n *NewestStore) isDue(at time.Time, again *bool, now time.Time) bool {
	age := now.Sub(at)
	if n.locked || age < NewestAge/2 || *again && age < NewestAge {
		return false
	}
	*again = true
	return true
}

// CreateVersion stores a version and drops the newest version from the cache.
func (n *NewestStore) CreateVersion(ctx context.Context, v Version) error {
	n.forgetFlow(v.FlowID)
	err := n.Store.CreateVersion(ctx, v)
	n.forgetFlow(v.FlowID)
	n.notifyChanged(ctx, v.FlowID)
	return err
}

// DeleteFlow deletes a flow from the store and from the cache.
func (n *NewestStore) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	n.Forget(id)
	tasks, err := n.Store.DeleteFlow(ctx, id, limit)
	n.Forget(id)
	n.notifyChanged(ctx, id)
	return tasks, err
}

// PutSchedule stores a schedule and reports the change of its flow.
func (n *NewestStore) PutSchedule(ctx context.Context, s Schedule) error {
	err := n.Store.PutSchedule(ctx, s)
	n.notifyChanged(ctx, s.FlowID)
	return err
}

// forgetFlow drops the newest version of a flow from the cache.
func (n *NewestStore) forgetFlow(flow string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	n.versions.Drop(flow)
}

// notifyChanged calls Changed for a flow, also if the change may have failed.
func (n *NewestStore) notifyChanged(ctx context.Context, flow string) {
	if n.Changed != nil {
		n.Changed(ctx, flow)
	}
}

// Clear empties the cache, because the store went back in time.
func (n *NewestStore) Clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	n.versions.Clear()
	n.flows.Clear()
}

// Forget drops a changed flow from the cache. It drops all slugs, because deletions of flows are
// rare.
func (n *NewestStore) Forget(flow string) {
	n.forgetFlow(flow)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flows.Clear()
}
