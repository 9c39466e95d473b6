package actors

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// known is a job that was given to this member before. One that it was given at an earlier time is over, whatever it may be about to
// report: meanwhile its worker was somewhere else with it.
func (s *sessions) known(key jobKey, given int) *flight {
	f := s.flights[key]
	if f == nil || f.given >= given {
		return f
	}
	s.withdraw(key, f.given)
	s.forget(f)
	return nil
}

// flight keeps the dispatch as it has come: the job is large, and a copy would be a second one in memory.
func (s *sessions) flight(key jobKey, dispatch flow.Effect, w way, in *inbox) *flight {
	f := &flight{key: key, dispatch: dispatch, way: w}
	f.given = f.dispatch.(flow.Dispatch).Job.Given
	f.off.member = s.m.ctx
	f.inbox.Store(in)
	return f
}

func (s *sessions) know(f *flight) {
	s.flights[f.key] = f
	if f.older = s.tasks[f.key.task]; f.older != nil {
		f.older.newer = f
	}
	s.tasks[f.key.task] = f
}

func (s *sessions) forget(f *flight) {
	if s.flights[f.key] != f {
		return // it was forgotten before
	}
	delete(s.flights, f.key)
	if f.older != nil {
		f.older.newer = f.newer
	}
	switch {
	case f.newer != nil:
		f.newer.older = f.older
	case f.older != nil:
		s.tasks[f.key.task] = f.older
	default:
		delete(s.tasks, f.key.task)
	}
	f.older, f.newer = nil, nil
}

// only withdraws what a task is no longer owed.
func (s *sessions) only(m only) {
	f := s.tasks[m.task]
	if f == nil {
		return
	}
	owed := map[flow.Address]bool{}
	for _, e := range m.owed {
		if job := flow.JobOf(e); job != nil {
			owed[job.Address] = true
		}
	}
	for f != nil {
		older := f.older
		if !owed[f.key.at] && within(f.key.at, m.under) {
			s.withdraw(f.key, f.given)
		}
		f = older
	}
}

// within says whether a place is in a step or below it; every place is within none.
func within(at, step flow.Address) bool {
	if step.Node == "" || at.Scope == step.Scope && at.Node == step.Node && at.Visit == step.Visit {
		return true
	}
	scope := flow.ChildScope(step)
	return at.Scope == scope || strings.HasPrefix(at.Scope, scope+"/")
}

// inOrder are flights in the order of their jobs: whoever repeats a run finds the same one.
func (s *sessions) inOrder(which func(*flight) bool) (list []*flight) {
	for _, f := range s.flights {
		if which(f) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *flight) int {
		return cmp.Or(cmp.Compare(a.key.task, b.key.task), a.key.at.Compare(b.key.at))
	})
	return list
}
