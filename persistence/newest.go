package persistence

import (
	"context"
	"sync"
)

// Newest wraps a store so that it remembers the newest published version of each flow, which every
// start of a task asks for. It must see every version that is created: one wrapper for all who use
// the store, and one member on it.
func Newest(store Store) Store { return &newest{Store: store, of: map[string]*Version{}} }

type newest struct {
	Store
	mu      sync.Mutex
	of      map[string]*Version
	changes int // of versions; what was read while one was under way is not remembered
}

// maxNewest bounds how many flows are remembered.
const maxNewest = 4096

func (n *newest) FindVersion(ctx context.Context, flow string, number int) (*Version, error) {
	if number != 0 {
		return n.Store.FindVersion(ctx, flow, number)
	}
	n.mu.Lock()
	v, changes := n.of[flow], n.changes
	n.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := n.Store.FindVersion(ctx, flow, 0)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if changes == n.changes {
		if len(n.of) >= maxNewest {
			clear(n.of)
		}
		n.of[flow] = v
	}
	return v, nil
}

func (n *newest) CreateVersion(ctx context.Context, v Version) error {
	n.change(v.FlowID)
	defer n.change(v.FlowID)
	return n.Store.CreateVersion(ctx, v)
}

func (n *newest) change(flow string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	delete(n.of, flow)
}
