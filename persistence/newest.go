package persistence

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Newest wraps a store so that it remembers what every start of a task asks for: which flow has a
// slug, and the newest published version of each flow. What is created or deleted through the
// wrapper is known at once, so there is one for all who use the store here. What another member
// creates or deletes is known no later than NewestAge after, by the clock now, and at once where
// Forget is told; a store that is Locked has no other.
func Newest(store Store, now func() time.Time) *NewestStore {
	return &NewestStore{Store: store, now: now, locked: store.Locked(),
		flows: lru.New[*cachedRead[Flow]](maxFlowBytes), versions: lru.New[*cachedRead[Version]](maxNewestBytes)}
}

// NewestAge is how long a member may begin tasks of a version to which another one has published a
// newer. When half of it is over somebody reads anew, while others go on with what there is.
const NewestAge = time.Second

// Bounds on what is remembered.
const (
	maxFlowBytes   = 4 << 20
	maxNewestBytes = 32 << 20
)

// NewestStore is a store with a memory; see Newest.
type NewestStore struct {
	Store
	// Changed hears of each flow that was published to, or deleted, or whose schedules changed,
	// here, before whoever did that is answered. It has other members Forget it. nil = there are
	// none.
	Changed func(ctx context.Context, flow string)

	now      func() time.Time
	locked   bool
	mu       sync.Mutex
	flows    *lru.Cache[*cachedRead[Flow]]    // by slug
	versions *lru.Cache[*cachedRead[Version]] // the newest, by flow
	changes  int                              // of what is remembered; what was read while one was under way is not remembered
}

// cachedRead is what the store said.
type cachedRead[V any] struct {
	value      *V
	at         time.Time // when it was asked
	refreshing bool      // somebody is asking anew
}

// FindVersion returns a version of a flow; the newest one, which number 0 asks for, is remembered
// for a while.
func (n *NewestStore) FindVersion(ctx context.Context, flow string, number int) (*Version, error) {
	ask := func() (*Version, error) { return n.Store.FindVersion(ctx, flow, number) }
	if number != 0 {
		return ask()
	}
	return readThrough(n, n.versions, flow, ask, func(v *Version) int {
		return len(v.ID) + len(v.FlowID) + len(v.Status) + len(v.Hash) + len(v.Definition)
	})
}

// FlowBySlug returns the flow with a slug, which is remembered for a while.
func (n *NewestStore) FlowBySlug(ctx context.Context, slug string) (*Flow, error) {
	ask := func() (*Flow, error) { return n.Store.FlowBySlug(ctx, slug) }
	return readThrough(n, n.flows, slug, ask, func(f *Flow) int {
		return len(f.ID) + len(f.Slug) + len(f.Name) + len(f.Description)
	})
}

// readThrough is a copy of what a cache has, else what the store says, which the cache has from
// then on.
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

// isDue reports whether the caller has to ask anew what was read at some time.
func (n *NewestStore) isDue(at time.Time, again *bool, now time.Time) bool {
	age := now.Sub(at)
	if n.locked || age < NewestAge/2 || *again && age < NewestAge {
		return false
	}
	*again = true
	return true
}

// CreateVersion stores a version, and forgets the one that was the newest before.
func (n *NewestStore) CreateVersion(ctx context.Context, v Version) error {
	n.forgetFlow(v.FlowID)
	err := n.Store.CreateVersion(ctx, v)
	n.forgetFlow(v.FlowID)
	n.notifyChanged(ctx, v.FlowID)
	return err
}

// DeleteFlow deletes a flow from the store, and forgets it.
func (n *NewestStore) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	n.Forget(id)
	tasks, err := n.Store.DeleteFlow(ctx, id, limit)
	n.Forget(id)
	n.notifyChanged(ctx, id)
	return tasks, err
}

// PutSchedule stores a schedule, and reports the change of its flow.
func (n *NewestStore) PutSchedule(ctx context.Context, s Schedule) error {
	err := n.Store.PutSchedule(ctx, s)
	n.notifyChanged(ctx, s.FlowID)
	return err
}

// forgetFlow forgets the newest version of a flow.
func (n *NewestStore) forgetFlow(flow string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	n.versions.Drop(flow)
}

// notifyChanged tells of a flow, also when it is not known whether it has changed.
func (n *NewestStore) notifyChanged(ctx context.Context, flow string) {
	if n.Changed != nil {
		n.Changed(ctx, flow)
	}
}

// Clear forgets everything: the store went back in time.
func (n *NewestStore) Clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	n.versions.Clear()
	n.flows.Clear()
}

// Forget forgets a flow that has changed. All slugs go with it: flows are deleted rarely, and slugs
// are known again soon.
func (n *NewestStore) Forget(flow string) {
	n.forgetFlow(flow)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flows.Clear()
}
