package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// learnSoon is how long the store is left alone after it was read for somebody who missed a worker.
const learnSoon = 250 * time.Millisecond

// learnNow learns for somebody who misses a worker what the store says now. Those who come at once, or soon one after the other,
// wait for one reading. False: there is nothing new.
func (r *Registry) learnNow(ctx context.Context) bool {
	if r.opts.Learn <= 0 {
		return false
	}
	came := time.Now()
	if !r.beginLearning(ctx) {
		return false
	}
	defer r.endLearning()
	if r.learned.After(came) {
		return true
	}
	soon := time.NewTimer(learnSoon - time.Since(r.learned))
	defer soon.Stop()
	select {
	case <-soon.C:
	case <-ctx.Done():
		return false
	}
	return r.learnHeld(ctx) == nil
}

// learnMissed learns of workers that others have heard, and whose registration was not told here.
func (r *Registry) learnMissed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.missed:
			r.learnNow(ctx)
		}
	}
}

func (r *Registry) learn(ctx context.Context) error {
	if !r.beginLearning(ctx) {
		return ctx.Err()
	}
	defer r.endLearning()
	return r.learnHeld(ctx)
}

// beginLearning waits until nobody else reads the store. It is false when ctx has ended.
func (r *Registry) beginLearning(ctx context.Context) bool {
	select {
	case r.learning <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Registry) endLearning() { <-r.learning }

// learnTries is how often the workers are read while some change here; then that is left for the next time.
const learnTries = 3

// learnHeld reads the registrations and signs of life that the store has. Nobody else does.
func (r *Registry) learnHeld(ctx context.Context) error {
	for range learnTries {
		began, before, changes := time.Now(), r.snapshot(), r.changes.Load()
		known, err := r.store.ListWorkers(ctx)
		if err != nil {
			return fmt.Errorf("read the workers: %w", err)
		}
		r.learned = began
		if r.hearAll(known, before, changes) {
			break
		}
	}
	return nil
}

// hearAll takes up what the store said, unless registrations have changed here since before it was asked.
func (r *Registry) hearAll(known []persistence.Worker, before []*worker, changes int64) bool {
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
			r.remove(w)
		}
	}
	for _, w := range known {
		r.hear(w)
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
		r.hearGone(w, known)
		return
	case known == nil && r.struck.has(w.ID, w.JoinedAt): // it was told late
		return
	case known == nil || known.joined.Load() < w.JoinedAt:
		r.changes.Add(1)
	}
	p := r.hear(w)
	p.load.Store(int64(w.Load)) // clocks of members differ by a little: what is told just now is newer
	p.heard.Store(true)
}

// HearBeat takes up a sign of life that another member tells of. It makes nobody known, since it may be late: a registration is told apart, and
// when that has not come the store is asked.
func (r *Registry) HearBeat(b persistence.Heartbeat) {
	w := r.find(b.ID)
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
	w.last.Store(max(b.At, w.last.Load()))
	w.load.Store(int64(b.Load)) // as in Hear
	w.heard.Store(true)
}

// hearGone strikes off a worker that has gone elsewhere, unless it has come again. The lock is held.
func (r *Registry) hearGone(w persistence.Worker, known *worker) {
	r.changes.Add(1)
	r.struck.note(w.ID, w.JoinedAt, r.opts.Now())
	if known != nil && known.joined.Load() <= w.JoinedAt {
		r.remove(known)
	}
}

// hear takes up what is known elsewhere of a worker. The lock is held.
func (r *Registry) hear(w persistence.Worker) *pulse {
	w.Labels = sorted(w.Labels)
	known := r.byID[w.ID]
	if known == nil {
		p := &pulse{}
		p.learn(w)
		r.place(w, p)
		return p
	}
	newer := w.JoinedAt >= known.joined.Load()
	known.learn(w)
	if newer && !sameRegistration(known.Worker, w) {
		r.place(w, known.pulse)
	}
	return known.pulse
}

// pollsDiffer is by how much the clocks of two members may: a poll at another member counts so much earlier, lest it be taken
// for one that came after the claim which it led to.
const pollsDiffer = time.Second

// learn takes what the store says, where it is newer: the worker was heard elsewhere.
func (p *pulse) learn(w persistence.Worker) {
	if w.LastHeartbeat > p.last.Load() {
		p.last.Store(w.LastHeartbeat)
		p.load.Store(int64(w.Load))
	}
	p.joined.Store(max(p.joined.Load(), w.JoinedAt))
	p.polled.Store(max(p.polled.Load(), w.PolledAt-pollsDiffer.Milliseconds()))
}

func sameRegistration(a, b persistence.Worker) bool {
	return a.URL == b.URL && a.Type == b.Type && a.Secret == b.Secret && a.RegisteredAt == b.RegisteredAt &&
		slices.Equal(a.Services, b.Services) && slices.Equal(a.Labels, b.Labels)
}

func sorted(labels []string) []string { return slices.Compact(slices.Sorted(slices.Values(labels))) }
