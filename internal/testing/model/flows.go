package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) CreateFlow(ctx context.Context, f persistence.Flow) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, other := range s.flows {
		if other.ID == f.ID || f.Slug != "" && other.Slug == f.Slug {
			return persistence.ErrDuplicate
		}
	}
	s.flows = append(s.flows, f)
	return nil
}

func (s *store) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	return findFirst(ctx, s, &s.flows, func(f persistence.Flow) bool { return f.ID == id })
}

func (s *store) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	return findFirst(ctx, s, &s.flows, func(f persistence.Flow) bool { return f.Slug == slug && slug != "" })
}

// findFirst returns the first element for which fits is true.
func findFirst[T any](ctx context.Context, s *store, list *[]T, fits func(T) bool) (*T, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	i := slices.IndexFunc(*list, fits)
	if i < 0 {
		return nil, persistence.ErrNotFound
	}
	found := (*list)[i]
	return &found, nil
}

func (s *store) ListFlows(ctx context.Context, offset, limit int) ([]persistence.Flow, int, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	list := []persistence.Flow{}
	for _, f := range slices.Backward(s.flows) {
		if !f.Tried {
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b persistence.Flow) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	total := len(list)
	list = list[min(offset, total):]
	if limit > 0 {
		list = takeFirst(list, limit)
	}
	return list, total, nil
}

func (s *store) ListTried(ctx context.Context, before int64, limit int) ([]persistence.Flow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := []persistence.Flow{}
	for _, f := range s.flows {
		if f.Tried && f.CreatedAt < before {
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b persistence.Flow) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return takeFirst(list, limit), nil
}

func (s *store) CreateVersion(ctx context.Context, v persistence.Version) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !slices.ContainsFunc(s.flows, func(f persistence.Flow) bool { return f.ID == v.FlowID }) {
		return persistence.ErrNotFound
	}
	highest := 0
	for _, other := range s.versions {
		if other.ID == v.ID {
			return persistence.ErrDuplicate
		}
		if other.FlowID == v.FlowID {
			highest = max(highest, other.Number)
		}
	}
	if v.Number == 0 {
		v.Number = highest + 1
	}
	v.Definition = slices.Clone(v.Definition)
	s.versions = append(s.versions, v)
	return nil
}

func (s *store) Version(ctx context.Context, id string) (*persistence.Version, error) {
	return findFirst(ctx, s, &s.versions, func(v persistence.Version) bool { return v.ID == id })
}

func (s *store) FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error) {
	list, err := s.ListVersions(ctx, flowID)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		if v.Number == number || number == 0 && v.Status == "published" {
			return s.Version(ctx, v.ID)
		}
	}
	return nil, persistence.ErrNotFound
}

func (s *store) ListVersions(ctx context.Context, flowID string) ([]persistence.Version, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := []persistence.Version{}
	for _, v := range s.versions {
		if v.FlowID == flowID {
			v.Definition = nil
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b persistence.Version) int { return cmp.Compare(b.Number, a.Number) })
	return list, nil
}
