package persistence

import (
	"context"
	"sync"

	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Newest wraps a store so that it remembers what every start of a task asks for: which flow has a slug, and
// the newest published version of each flow. It must see every flow and version that is created or deleted: one
// wrapper for all who use the store, and one member on it.
func Newest(store Store) Store {
	return &newest{Store: store, flows: lru.New[*Flow](maxFlowBytes), versions: lru.New[*Version](maxNewestBytes)}
}

// Bounds on what is remembered.
const (
	maxFlowBytes   = 4 << 20
	maxNewestBytes = 32 << 20
)

type newest struct {
	Store
	mu       sync.Mutex
	flows    *lru.Cache[*Flow]    // by slug
	versions *lru.Cache[*Version] // the newest, by flow
	changes  int                  // of what is remembered; what was read while one was under way is not remembered
}

func (n *newest) FindVersion(ctx context.Context, flow string, number int) (*Version, error) {
	read := func() (*Version, error) { return n.Store.FindVersion(ctx, flow, number) }
	if number != 0 {
		return read()
	}
	return remembered(n, n.versions, flow, read, func(v *Version) int {
		return len(v.ID) + len(v.FlowID) + len(v.Status) + len(v.Hash) + len(v.Definition)
	})
}

func (n *newest) FlowBySlug(ctx context.Context, slug string) (*Flow, error) {
	read := func() (*Flow, error) { return n.Store.FlowBySlug(ctx, slug) }
	return remembered(n, n.flows, slug, read, func(f *Flow) int {
		return len(f.ID) + len(f.Slug) + len(f.Name) + len(f.Description)
	})
}

// remembered is a copy of what a cache has, else what the store says, which the cache has from then on.
func remembered[V any](n *newest, c *lru.Cache[*V], key string, read func() (*V, error), size func(*V) int) (*V, error) {
	n.mu.Lock()
	known, ok := c.Get(key)
	changes := n.changes
	n.mu.Unlock()
	if !ok {
		var err error
		if known, err = read(); err != nil {
			return nil, err
		}
		n.mu.Lock()
		if changes == n.changes {
			c.Put(key, known, size(known))
		}
		n.mu.Unlock()
	}
	own := *known
	return &own, nil
}

func (n *newest) CreateVersion(ctx context.Context, v Version) error {
	n.forget(v.FlowID)
	defer n.forget(v.FlowID)
	return n.Store.CreateVersion(ctx, v)
}

func (n *newest) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	n.forgetSlugs(id)
	defer n.forgetSlugs(id)
	return n.Store.DeleteFlow(ctx, id, limit)
}

// forget forgets the newest version of a flow.
func (n *newest) forget(flow string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	n.versions.Drop(flow)
}

// forgetSlugs forgets a flow. All slugs go with it: flows are deleted rarely, and slugs are known again soon.
func (n *newest) forgetSlugs(flow string) {
	n.forget(flow)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flows.Clear()
}
