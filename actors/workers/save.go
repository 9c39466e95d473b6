package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// maxWorkers bounds how many workers are remembered. When it is reached, those silent for
// crowdedTTL make room.
const (
	maxWorkers = 10_000
	crowdedTTL = time.Hour
)

// repeatEvery does something every while. That it fails is told once, until it has succeeded.
func (r *Registry) repeatEvery(ctx context.Context, every time.Duration, do func(context.Context) error, complaint string) {
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

// saveAndForget writes heartbeats in groups and forgets who has been silent for long.
func (r *Registry) saveAndForget(ctx context.Context) error {
	if err := r.saveHeartbeats(ctx); err != nil {
		return err
	}
	r.logOffline()
	return r.forgetSilent(ctx, r.opts.Now()-r.opts.Forget.Milliseconds())
}

// saveHeartbeats writes the heartbeats that came since the last time.
func (r *Registry) saveHeartbeats(ctx context.Context) error {
	var beats []persistence.Heartbeat
	var from []*registeredWorker
	for _, w := range r.listWorkers() {
		if w.unsaved.Swap(false) {
			beats = append(beats, persistence.Heartbeat{ID: w.ID, Load: int(w.load.Load()), At: w.heartbeatAt.Load(), PolledAt: w.polled.Load()})
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

func (r *Registry) listWorkers() []*registeredWorker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return append([]*registeredWorker(nil), r.ordered...)
}

// forgetSilent drops the workers that were silent all the time since. Heartbeats must have been
// saved just before, or the store would forget more than memory does.
func (r *Registry) forgetSilent(ctx context.Context, since int64) error {
	if r.dropSilent(since) == 0 {
		return nil
	}
	if _, err := r.store.DeleteWorkers(ctx, since); err != nil {
		return fmt.Errorf("forget silent workers: %w", err)
	}
	return nil
}

func (r *Registry) dropSilent(since int64) (dropped int) {
	for _, w := range r.listWorkers() {
		if w.heartbeatAt.Load() >= since {
			continue
		}
		r.mu.Lock()
		if r.byID[w.ID] == w && w.heartbeatAt.Load() < since {
			r.removeWorker(w)
			dropped++
		}
		r.mu.Unlock()
	}
	return dropped
}

// makeRoom is asked before a worker is added. Who makes room is forgotten by the store, too: it
// would be learned from there again.
func (r *Registry) makeRoom(ctx context.Context) error {
	if r.countWorkers() < maxWorkers {
		return nil
	}
	if err := r.saveHeartbeats(ctx); err != nil {
		return err
	}
	if err := r.forgetSilent(ctx, r.opts.Now()-crowdedTTL.Milliseconds()); err != nil {
		return err
	}
	if r.countWorkers() < maxWorkers {
		return nil
	}
	return flow.Errorf(flow.Limit, "%d workers are registered; no more are taken", maxWorkers)
}

func (r *Registry) countWorkers() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byID)
}
