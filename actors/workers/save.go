package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// maxWorkers bounds how many workers are remembered. When it is reached, those silent for crowdedTTL
// make room.
const (
	maxWorkers = 10_000
	crowdedTTL = time.Hour
)

// again does something every while. That it fails is told once, until it has succeeded.
func (r *Registry) again(ctx context.Context, every time.Duration, do func(context.Context) error, complaint string) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := do(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.opts.Logger.Warn(complaint, "error", err)
		}
		failing = err != nil
	}
}

// keep writes heartbeats in groups and forgets who has been silent for long.
func (r *Registry) keep(ctx context.Context) error {
	if err := r.save(ctx); err != nil {
		return err
	}
	r.tellMissed()
	return r.forget(ctx, r.opts.Now()-r.opts.Forget.Milliseconds())
}

// save writes the heartbeats that came since the last time.
func (r *Registry) save(ctx context.Context) error {
	var beats []persistence.Heartbeat
	var from []*worker
	for _, w := range r.snapshot() {
		if w.unsaved.Swap(false) {
			beats = append(beats, persistence.Heartbeat{ID: w.ID, Load: int(w.load.Load()), At: w.last.Load(), PolledAt: w.polled.Load()})
			from = append(from, w)
		}
	}
	if len(beats) == 0 {
		return nil
	}
	if err := r.store.TouchWorkers(ctx, beats); err != nil {
		for _, w := range from {
			w.unsaved.Store(true)
		}
		return fmt.Errorf("write heartbeats: %w", err)
	}
	return nil
}

func (r *Registry) snapshot() []*worker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return append([]*worker(nil), r.ordered...)
}

// forget drops the workers that were silent all the time since. Heartbeats must have been saved
// just before, or the store would forget more than memory does.
func (r *Registry) forget(ctx context.Context, since int64) error {
	if r.drop(since) == 0 {
		return nil
	}
	if _, err := r.store.DeleteWorkers(ctx, since); err != nil {
		return fmt.Errorf("forget silent workers: %w", err)
	}
	return nil
}

func (r *Registry) drop(since int64) (dropped int) {
	for _, w := range r.snapshot() {
		if w.last.Load() >= since {
			continue
		}
		r.mu.Lock()
		if r.byID[w.ID] == w && w.last.Load() < since {
			r.remove(w)
			dropped++
		}
		r.mu.Unlock()
	}
	return dropped
}

// makeRoom is asked before a worker is added. Who makes room is forgotten by the store, too: it would be learned from there again.
func (r *Registry) makeRoom(ctx context.Context) error {
	if r.count() < maxWorkers {
		return nil
	}
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := r.forget(ctx, r.opts.Now()-crowdedTTL.Milliseconds()); err != nil {
		return err
	}
	if r.count() < maxWorkers {
		return nil
	}
	return flow.Errorf(flow.Limit, "%d workers are registered; no more are taken", maxWorkers)
}

func (r *Registry) count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byID)
}
