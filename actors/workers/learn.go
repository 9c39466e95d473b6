package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// refreshPause is how long the store is left alone after it was read for somebody who missed a
// worker.
const refreshPause = 250 * time.Millisecond

// refreshNow learns for somebody who misses a worker what the store says now. Those who come at
// once, or soon one after the other, wait for one reading. False: there is nothing new.
func (r *Registry) refreshNow(ctx context.Context) bool {
	if r.opts.Learn <= 0 {
		return false
	}
	came := time.Now()
	if !r.lockRefresh(ctx) {
		return false
	}
	defer r.unlockRefresh()
	if r.refreshedAt.After(came) {
		return true
	}
	soon := time.NewTimer(refreshPause - time.Since(r.refreshedAt))
	defer soon.Stop()
	select {
	case <-soon.C:
	case <-ctx.Done():
		return false
	}
	return r.refreshLocked(ctx) == nil
}

// refreshMissed learns of workers that others have heard, and whose registration was not told here.
func (r *Registry) refreshMissed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.missed:
			r.refreshNow(ctx)
		}
	}
}

func (r *Registry) refreshWorkers(ctx context.Context) error {
	if !r.lockRefresh(ctx) {
		return ctx.Err()
	}
	defer r.unlockRefresh()
	return r.refreshLocked(ctx)
}

// lockRefresh waits until nobody else reads the store. It is false when ctx has ended.
func (r *Registry) lockRefresh(ctx context.Context) bool {
	select {
	case r.refreshLock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Registry) unlockRefresh() { <-r.refreshLock }

// refreshTries is how often the workers are read while some change here; then that is left for the
// next time.
const refreshTries = 3

// refreshLocked reads the registrations and signs of life that the store has. Nobody else does.
func (r *Registry) refreshLocked(ctx context.Context) error {
	for range refreshTries {
		began, before, changes := time.Now(), r.listWorkers(), r.changes.Load()
		known, err := r.store.ListWorkers(ctx)
		if err != nil {
			return fmt.Errorf("read the workers: %w", err)
		}
		r.refreshedAt = began
		if r.mergeAll(known, before, changes) {
			break
		}
	}
	return nil
}

// mergeAll takes up what the store said, unless registrations have changed here since before it was
// asked.
func (r *Registry) mergeAll(known []persistence.Worker, before []*registeredWorker, changes int64) bool {
	there := make(map[string]bool, len(known))
	for _, w := range known {
		there[w.ID] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if changes != r.changes.Load() {
		return false
	}
	for _, w := range before {
		if !there[w.ID] && r.byID[w.ID] == w {
			r.removeWorker(w)
		}
	}
	for _, w := range known {
		r.mergeWorker(w)
	}
	return true
}

// Hear takes up what another member tells of a worker.
func (r *Registry) Hear(w persistence.Worker, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byID[w.ID]
	switch {
	case gone:
		r.mergeGone(w, known)
		return
	case known == nil && r.removed.hasRemoved(w.ID, w.JoinedAt): // it was told late
		return
	case known == nil || known.joined.Load() < w.JoinedAt:
		r.changes.Add(1)
	}
	p := r.mergeWorker(w)
	p.load.Store(int64(w.Load)) // clocks of members differ by a little: what is told just now is newer
	p.heard.Store(true)
}

// HearBeat takes up a sign of life that another member tells of. It makes nobody known, since it
// may be late: a registration is told apart, and when that has not come the store is asked.
func (r *Registry) HearBeat(b persistence.Heartbeat) {
	w := r.findWorker(b.ID)
	switch {
	case w == nil:
		select {
		case r.missed <- struct{}{}:
		default: // it is asked anyway
		}
		return
	case b.At < w.joined.Load():
		return
	}
	w.heartbeatAt.Store(max(b.At, w.heartbeatAt.Load()))
	w.load.Store(int64(b.Load)) // as in Hear
	w.heard.Store(true)
}

// mergeGone strikes off a worker that has gone elsewhere, unless it has come again. The lock is
// held.
func (r *Registry) mergeGone(w persistence.Worker, known *registeredWorker) {
	r.changes.Add(1)
	r.removed.addRemoved(w.ID, w.JoinedAt, r.opts.Now())
	if known != nil && known.joined.Load() <= w.JoinedAt {
		r.removeWorker(known)
	}
}

// mergeWorker takes up what is known elsewhere of a worker. The lock is held.
func (r *Registry) mergeWorker(w persistence.Worker) *workerLiveness {
	w.Labels = sortedUnique(w.Labels)
	known := r.byID[w.ID]
	if known == nil {
		p := &workerLiveness{}
		p.mergeStored(w)
		r.putWorkerLocked(w, p)
		return p
	}
	newer := w.JoinedAt >= known.joined.Load()
	known.mergeStored(w)
	if newer && !sameRegistration(known.Worker, w) {
		r.putWorkerLocked(w, known.workerLiveness)
	}
	return known.workerLiveness
}

// pollClockSkew is by how much the clocks of two members may: a poll at another member counts so
// much earlier, lest it be taken for one that came after the claim which it led to.
const pollClockSkew = time.Second

// mergeStored takes what the store says, where it is newer: the worker was heard elsewhere.
func (p *workerLiveness) mergeStored(w persistence.Worker) {
	if w.LastHeartbeat > p.heartbeatAt.Load() {
		p.heartbeatAt.Store(w.LastHeartbeat)
		p.load.Store(int64(w.Load))
	}
	p.joined.Store(max(p.joined.Load(), w.JoinedAt))
	p.polled.Store(max(p.polled.Load(), w.PolledAt-pollClockSkew.Milliseconds()))
}

func sameRegistration(a, b persistence.Worker) bool {
	return a.URL == b.URL && a.Type == b.Type && a.Secret == b.Secret && a.RegisteredAt == b.RegisteredAt &&
		slices.Equal(a.Services, b.Services) && slices.Equal(a.Labels, b.Labels)
}

func sortedUnique(labels []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(labels)))
}
