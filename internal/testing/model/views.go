package model

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) SetView(ctx context.Context, v persistence.SavedView) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.views[v.Name] = v
	return nil
}

func (s *store) ListViews(ctx context.Context) ([]persistence.SavedView, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := []persistence.SavedView{}
	for _, name := range slices.Sorted(maps.Keys(s.views)) {
		list = append(list, s.views[name])
	}
	return list, nil
}

func (s *store) DeleteView(ctx context.Context, name string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if _, there := s.views[name]; !there {
		return persistence.ErrNotFound
	}
	delete(s.views, name)
	return nil
}
