package model

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) PutWorker(ctx context.Context, w persistence.Worker) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	w.Services, w.Labels = slices.Clone(w.Services), slices.Clone(w.Labels)
	if len(w.Labels) == 0 {
		w.Labels = nil
	}
	if i := s.workerIndex(w.ID); i >= 0 {
		w.RegisteredAt = s.workers[i].RegisteredAt
		w.PolledAt = max(w.PolledAt, s.workers[i].PolledAt)
		s.workers[i] = w
		return nil
	}
	s.workers = append(s.workers, w)
	return nil
}

func (s *store) workerIndex(id string) int {
	return slices.IndexFunc(s.workers, func(w persistence.Worker) bool { return w.ID == id })
}

func (s *store) TouchWorkers(ctx context.Context, beats []persistence.Heartbeat) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, b := range beats {
		if i := s.workerIndex(b.ID); i >= 0 {
			w := &s.workers[i]
			w.Load, w.LastHeartbeat, w.PolledAt = b.Load, max(w.LastHeartbeat, b.At), max(w.PolledAt, b.PolledAt)
		}
	}
	return nil
}

func (s *store) ListWorkers(ctx context.Context) ([]persistence.Worker, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return append([]persistence.Worker{}, s.workers...), nil
}

func (s *store) DeleteWorker(ctx context.Context, id string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.workers = slices.DeleteFunc(s.workers, func(w persistence.Worker) bool { return w.ID == id })
	return nil
}

func (s *store) DeleteWorkers(ctx context.Context, silentSince int64) (int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	before := len(s.workers)
	s.workers = slices.DeleteFunc(s.workers, func(w persistence.Worker) bool { return w.LastHeartbeat < silentSince })
	return before - len(s.workers), nil
}
