package work

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

// Positions finds the positions of jobs in their queues.
type Positions struct {
	Workers *WorkerHandler

	Store    api.Store
	Reader   api.Reader
	Registry api.Registry
}

// addQueuePositions adds to waits for a worker how many jobs are before them, and how many workers
// could take them.
func (q *Positions) addQueuePositions(ctx context.Context, task string, waits []*wire.WaitReason) error {
	if !slices.ContainsFunc(waits, func(w *wire.WaitReason) bool { return w.Service != "" }) {
		return nil
	}
	known, err := q.Registry.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range waits {
		if w.Service == "" {
			continue
		}
		fit := q.countEligible(known, w.Service, w.Labels)
		w.Workers = &fit
		before, err := q.Store.QueueBefore(ctx, task, w.Job, persistence.MostBefore)
		switch {
		case err == nil:
			w.Ahead = &before
		case !errors.Is(err, persistence.ErrNotFound): // the job has ended, or is not queued yet
			return err
		}
	}
	return nil
}

// countEligible counts the online workers that offer a service and have all the labels.
func (q *Positions) countEligible(known []persistence.Worker, service string, labels []string) (n int) {
	for i := range known {
		w := &known[i]
		lacks := func(label string) bool { return !slices.Contains(w.Labels, label) }
		if q.Workers.isOnline(w) && slices.Contains(w.Services, service) && !slices.ContainsFunc(labels, lacks) {
			n++
		}
	}
	return n
}
