package model

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

// Externals stores externals in a map.
type Externals struct {
	rows map[persistence.ExternalID]*persistence.ExternalRow
}

// NewExternals returns an empty Externals.
func NewExternals() *Externals {
	return &Externals{rows: map[persistence.ExternalID]*persistence.ExternalRow{}}
}

// Clone returns a copy.
func (x *Externals) Clone() *Externals {
	c := NewExternals()
	for id, r := range x.rows {
		row := *r
		c.rows[id] = &row
	}
	return c
}

// Commit applies the changes of a commit.
func (x *Externals) Commit(task string, c *persistence.ExternalChanges) {
	if c == nil {
		return
	}
	for _, id := range c.Recall {
		if r := x.rows[id]; r != nil {
			r.Recalled, r.NextAt, r.Failures = true, 0, 0
		}
	}
	for _, r := range c.Tracked(task) {
		if x.rows[r.Key()] == nil {
			r.Data = slices.Clone(r.Data)
			x.rows[r.Key()] = &r
		}
	}
	for _, id := range c.Untrack {
		delete(x.rows, id)
	}
}

// Drop deletes the externals of a task.
func (x *Externals) Drop(task string) {
	maps.DeleteFunc(x.rows, func(id persistence.ExternalID, _ *persistence.ExternalRow) bool { return id.Task == task })
}

// Next returns the externals to poll next.
func (x *Externals) Next(shards persistence.ShardSet, limit int) []persistence.ExternalRow {
	list := x.listWhere(func(r *persistence.ExternalRow) bool { return shards.Has(r.Task) })
	slices.SortStableFunc(list, func(a, b persistence.ExternalRow) int { return cmp.Compare(a.NextAt, b.NextAt) })
	return takeFirst(list, limit)
}

// Of returns the externals of a task.
func (x *Externals) Of(task string) []persistence.ExternalRow {
	return x.listWhere(func(r *persistence.ExternalRow) bool { return r.Task == task })
}

func (x *Externals) listWhere(which func(*persistence.ExternalRow) bool) []persistence.ExternalRow {
	list := []persistence.ExternalRow{}
	for _, r := range x.rows {
		if which(r) {
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b persistence.ExternalRow) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Index, b.Index))
	})
	return list
}

// Note stores the results of polls.
func (x *Externals) Note(notes []persistence.ExternalNote) {
	for _, n := range notes {
		r := x.rows[n.ExternalID]
		switch {
		case r == nil:
		case n.Gone:
			delete(x.rows, n.ExternalID)
		case r.Recalled == n.Recalled:
			r.NextAt, r.Polls, r.Failures, r.FailingAt, r.Pending, r.Memo = n.NextAt, n.Polls,
				n.Failures, n.FailingAt, n.Pending, slices.Clone(n.Memo)
		}
	}
}

func (s *store) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.externals.Next(shards, limit), nil
}

func (s *store) ExternalsOf(ctx context.Context, task string) ([]persistence.ExternalRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.externals.Of(task), nil
}

func (s *store) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if s.findMember(incarnation) == nil {
		return persistence.ErrFenced
	}
	s.externals.Note(notes)
	return nil
}
