package model

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

// objectHold is a hold of an object by a task.
type objectHold struct {
	persistence.Object
	task string
}

func (s *store) Hold(ctx context.Context, task, from string, at int64, objects []persistence.Object) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.tasks[from] == nil {
		return persistence.ErrUnknown
	}
	for _, o := range objects {
		s.holds[objectHold{o, task}] = max(s.holds[objectHold{o, task}], at)
	}
	return nil
}

func (s *store) Gone(ctx context.Context, tasks []string) (gone []string, err error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, id := range tasks {
		if s.tasks[id] == nil {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

func (s *store) Held(ctx context.Context, owner string) ([]string, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	names := map[string]bool{}
	for h := range s.holds {
		if h.Owner == owner {
			names[h.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (s *store) DropHolds(ctx context.Context, before int64, limit int) (owners []string, err error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for h, at := range s.holds {
		if len(owners) < limit && at < before && s.tasks[h.task] == nil {
			delete(s.holds, h)
			owners = append(owners, h.Owner)
		}
	}
	return owners, nil
}
