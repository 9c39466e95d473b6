package v1

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

// queuePositions finds the positions of jobs in their queues.
type queuePositions struct {
	workers *workerHandler

	store    api.Store
	reader   api.Reader
	registry api.Registry
}

// addQueuePositions adds to jobs in a queue how many jobs are before them, and how many workers
// could take them.
func (q *queuePositions) addQueuePositions(ctx context.Context, task string, waits []*wire.Wait) error {
	if !slices.ContainsFunc(waits, func(w *wire.Wait) bool { return w.Service != "" }) {
		return nil
	}
	known, err := q.registry.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range waits {
		if w.Service == "" {
			continue
		}
		fit := q.countEligible(known, w.Service, w.Labels)
		w.Workers = &fit
		before, err := q.store.QueueBefore(ctx, task, w.Job, persistence.MostBefore)
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
func (q *queuePositions) countEligible(known []persistence.Worker, service string, labels []string) (n int) {
	for i := range known {
		w := &known[i]
		lacks := func(label string) bool { return !slices.Contains(w.Labels, label) }
		if q.workers.isOnline(w) && slices.Contains(w.Services, service) && !slices.ContainsFunc(labels, lacks) {
			n++
		}
	}
	return n
}
