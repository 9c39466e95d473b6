package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

// Schedules stores schedules in a list.
type Schedules struct {
	list []persistence.Schedule // in order of name
}

// Put is PutSchedule for a flow that exists.
func (s *Schedules) Put(sc persistence.Schedule) error {
	i := slices.IndexFunc(s.list, func(other persistence.Schedule) bool { return other.ID == sc.ID || other.Name == sc.Name })
	switch {
	case sc.Revision == 0 && i >= 0:
		return persistence.ErrDuplicate
	case sc.Revision != 0 && (i < 0 || s.list[i].ID != sc.ID || s.list[i].Revision != sc.Revision):
		return persistence.ErrStale
	}
	sc.Revision++
	if i >= 0 {
		s.list[i] = sc
		return nil
	}
	s.list = append(s.list, sc)
	slices.SortFunc(s.list, func(a, b persistence.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// Of returns the schedules for which fits is true, in order of name.
func (s *Schedules) Of(fits func(*persistence.Schedule) bool) []persistence.Schedule {
	some := []persistence.Schedule{}
	for i := range s.list {
		if fits(&s.list[i]) {
			some = append(some, s.list[i])
		}
	}
	return some
}

// Due is DueSchedules.
func (s *Schedules) Due(shards persistence.ShardSet, by int64, limit int) []persistence.Schedule {
	due := s.Of(func(sc *persistence.Schedule) bool { return sc.Due > 0 && sc.Due <= by && shards.Has(sc.ID) })
	slices.SortFunc(due, func(a, b persistence.Schedule) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return takeFirst(due, limit)
}

// Drop deletes the schedules for which fits is true.
func (s *Schedules) Drop(fits func(*persistence.Schedule) bool) {
	s.list = slices.DeleteFunc(s.list, func(sc persistence.Schedule) bool { return fits(&sc) })
}

func (s *store) PutSchedule(ctx context.Context, sc persistence.Schedule) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !slices.ContainsFunc(s.flows, func(f persistence.Flow) bool { return f.ID == sc.FlowID }) {
		return persistence.ErrNotFound
	}
	return s.schedules.Put(sc)
}

func (s *store) Schedule(ctx context.Context, name string) (*persistence.Schedule, error) {
	return findFirst(ctx, s, &s.schedules.list, func(sc persistence.Schedule) bool { return sc.Name == name })
}

func (s *store) ListSchedules(ctx context.Context, f persistence.ScheduleFilter) ([]persistence.Schedule, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := s.schedules.Of(func(sc *persistence.Schedule) bool {
		return (f.FlowID == "" || sc.FlowID == f.FlowID) && sc.Name > f.After
	})
	if f.Limit > 0 {
		list = takeFirst(list, f.Limit)
	}
	return list, nil
}

func (s *store) DueSchedules(ctx context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.schedules.Due(shards, by, limit), nil
}

func (s *store) DeleteSchedule(ctx context.Context, id string) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.schedules.Drop(func(sc *persistence.Schedule) bool { return sc.ID == id })
	return nil
}
