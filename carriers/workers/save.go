package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// maxWorkers bounds the number of workers. At the bound, workers that are silent for crowdedTTL are
// removed.
const (
	maxWorkers = 10_000
	crowdedTTL = time.Hour
)

// repeatEvery calls do at an interval. It logs consecutive failures once.
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

// saveAndForget writes heartbeats in one group, and removes workers that are silent for Forget.
func (r *Registry) saveAndForget(ctx context.Context) error {
	if err := r.saveHeartbeats(ctx); err != nil {
		return err
	}
	r.logOffline()
	return r.forgetSilent(ctx, r.opts.Now()-r.opts.Forget.Milliseconds())
}

// saveHeartbeats writes the heartbeats since the last call.
func (r *Registry) saveHeartbeats(ctx context.Context) error {
	var beats []persistence.Heartbeat
	var from []*registeredWorker
	for _, w := range r.listWorkers() {
		if w.unsaved.Swap(false) {
			beats = append(beats, persistence.Heartbeat{ID: w.ID, Load: int(w.load.Load()),
				At: w.heartbeatAt.Load(), PolledAt: w.polled.Load()})
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

// forgetSilent removes the workers without a heartbeat since a time. Heartbeats must be saved just
// before, or the store would remove more workers than memory.
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

// makeRoom makes room for another worker at the bound. It also deletes the removed workers from the
// store, so that they are not read again.
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
