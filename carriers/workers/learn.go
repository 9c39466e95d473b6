package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// refreshPause is the minimum time between reads of the store for unknown workers.
const refreshPause = 250 * time.Millisecond

// refreshNow reads the workers from the store because a worker is unknown. Concurrent callers share
// one read. It returns false if there was no new read.
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

// refreshMissed reads the workers from the store after another member announced a heartbeat of an
// unknown worker.
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

// lockRefresh waits until no other goroutine reads the store. It returns false if ctx has ended.
func (r *Registry) lockRefresh(ctx context.Context) bool {
	select {
	case r.refreshLock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Registry) unlockRefresh() { <-r.refreshLock }

// refreshTries is how often the workers are read while registrations change here. After that, the
// next refresh reads them.
const refreshTries = 3

// refreshLocked reads the registrations and heartbeats from the store. The caller holds the refresh
// lock.
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

// mergeAll applies the workers from the store. It returns false if registrations have changed here
// since the read started.
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

// Hear applies another member's announcement of a worker. gone means that the worker has
// deregistered.
func (r *Registry) Hear(w persistence.Worker, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byID[w.ID]
	switch {
	case gone:
		r.mergeGone(w, known)
		return
	case known == nil && r.removed.hasRemoved(w.ID, w.JoinedAt): // the announcement was late
		return
	case known == nil || known.joined.Load() < w.JoinedAt:
		r.changes.Add(1)
	}
	p := r.mergeWorker(w)
	p.load.Store(int64(w.Load)) // newer, although clocks of members may differ
	p.heard.Store(true)
}

// HearBeat applies a heartbeat that another member announces. It adds no worker, because the
// heartbeat may be late. For an unknown worker, the store is read.
func (r *Registry) HearBeat(b persistence.Heartbeat) {
	w := r.findWorker(b.ID)
	switch {
	case w == nil:
		select {
		case r.missed <- struct{}{}:
		default: // a read is pending already
		}
		return
	case b.At < w.joined.Load():
		return
	}
	w.heartbeatAt.Store(max(b.At, w.heartbeatAt.Load()))
	w.load.Store(int64(b.Load)) // as in Hear
	w.heard.Store(true)
}

// mergeGone removes a worker that deregistered at another member, unless it has registered again.
// The caller holds the lock.
func (r *Registry) mergeGone(w persistence.Worker, known *registeredWorker) {
	r.changes.Add(1)
	r.removed.addRemoved(w.ID, w.JoinedAt, r.opts.Now())
	if known != nil && known.joined.Load() <= w.JoinedAt {
		r.removeWorker(known)
	}
}

// mergeWorker applies data of a worker from another member or the store. The caller holds the lock.
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

// pollClockSkew is the assumed clock difference between two members. A poll at another member
// counts as that much earlier, so that it does not seem later than its claim.
const pollClockSkew = time.Second

// mergeStored applies values from the store that are newer than the local ones.
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
