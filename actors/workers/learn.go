package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// learnSoon is how old what is known of other members' workers may be before a job is told that there is none for it.
const learnSoon = 250 * time.Millisecond

// learnLoop keeps up with workers that other members hear of.
func (r *Registry) learnLoop(ctx context.Context) {
	tick := time.NewTicker(r.opts.Learn)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := r.learn(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.opts.Logger.Warn("the workers of other members could not be read; trying on", "error", err)
		}
		failing = err != nil
	}
}

// learnNow learns for somebody who misses a worker, unless that has just been done. False: there is nothing new.
func (r *Registry) learnNow(ctx context.Context) bool {
	if r.opts.Learn <= 0 {
		return false
	}
	r.learning.Lock()
	defer r.learning.Unlock()
	if time.Since(r.learned) < learnSoon {
		return true // somebody else has looked just now
	}
	return r.learnHeld(ctx) == nil
}

func (r *Registry) learn(ctx context.Context) error {
	r.learning.Lock()
	defer r.learning.Unlock()
	return r.learnHeld(ctx)
}

// learnHeld reads the registrations and signs of life that the store has. One that changes here meanwhile is left for the next
// time. The lock is held.
func (r *Registry) learnHeld(ctx context.Context) error {
	before, changes := r.snapshot(), r.changes.Load()
	known, err := r.store.ListWorkers(ctx)
	if err != nil {
		return fmt.Errorf("read the workers: %w", err)
	}
	r.learned = time.Now()
	there := make(map[string]bool, len(known))
	for _, w := range known {
		there[w.ID] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if changes != r.changes.Load() {
		return nil
	}
	for _, w := range before {
		if !there[w.ID] && r.byID[w.ID] == w {
			r.remove(w)
		}
	}
	for _, w := range known {
		r.hear(w)
	}
	return nil
}

// hear takes up what the store says of a worker. The lock is held.
func (r *Registry) hear(w persistence.Worker) {
	w.Labels = sorted(w.Labels)
	known := r.byID[w.ID]
	if known == nil {
		p := &pulse{}
		p.learn(w)
		r.place(w, p)
		return
	}
	known.learn(w)
	if !sameRegistration(known.Worker, w) {
		r.place(w, known.pulse)
	}
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
