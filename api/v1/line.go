package v1

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

// addQueuePositions adds to jobs in a queue how many jobs are before them, and how many workers
// could take them.
func (s *service) addQueuePositions(ctx context.Context, task string, waits []*wire.Wait) error {
	if !slices.ContainsFunc(waits, func(w *wire.Wait) bool { return w.Service != "" }) {
		return nil
	}
	known, err := s.Registry.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range waits {
		if w.Service == "" {
			continue
		}
		fit := s.countEligible(known, w.Service, w.Labels)
		w.Workers = &fit
		before, err := s.Store.QueueBefore(ctx, task, w.Job, persistence.MostBefore)
		switch {
		case err == nil:
			w.Before = &before
		case !errors.Is(err, persistence.ErrNotFound): // it has ended, or has not been queued yet
			return err
		}
	}
	return nil
}

// countEligible counts the online workers that may take jobs of a service with these labels.
func (s *service) countEligible(known []persistence.Worker, service string, labels []string) (n int) {
	for i := range known {
		w := &known[i]
		lacks := func(label string) bool { return !slices.Contains(w.Labels, label) }
		if s.isOnline(w) && slices.Contains(w.Services, service) && !slices.ContainsFunc(labels, lacks) {
			n++
		}
	}
	return n
}
