package sim

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// forgetful is a store that sometimes reports "written" without writing.
type forgetful struct {
	persistence.Store
	rng *rand.Rand
}

func (f forgetful) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	if f.rng.IntN(20) == 0 {
		return make([]error, len(batch)), nil
	}
	return f.Store.Commit(ctx, incarnation, batch)
}

// careless is a store that sometimes does not record external work.
type careless struct {
	persistence.Store
	rng *rand.Rand
}

func (c careless) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		if x := batch[i].Externals; x != nil && len(x.Track) > 0 && c.rng.IntN(5) == 0 {
			batch[i].Externals = nil
		}
	}
	return c.Store.Commit(ctx, incarnation, batch)
}

// hurried is a store that accepts a schedule without checking its revision.
type hurried struct{ persistence.Store }

func (h hurried) PutSchedule(ctx context.Context, s persistence.Schedule) error {
	if now, err := h.Schedule(ctx, s.Name); err == nil {
		s.Revision = now.Revision
	}
	return h.Store.PutSchedule(ctx, s)
}

// hasty is a store that reports "written" before it writes.
type hasty struct {
	persistence.Store
	later *[]func()
}

func (h hasty) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	for _, write := range *h.later {
		write()
	}
	*h.later = []func(){func() { _, _ = h.Store.Commit(ctx, incarnation, batch) }}
	return make([]error, len(batch)), nil
}

// forgetEdge removes an edge of a dag: the dependent node is not notified, or does not wait at all.
func forgetEdge(p *flow.Plan, both bool) {
	if p.Root.Dag == nil {
		return
	}
	for _, n := range p.Root.Dag.List {
		last := len(n.Dag.Dependents) - 1
		if last < 0 || p.Root.Dag.List[n.Dag.Dependents[last]].Kind == flow.KindOutput {
			continue
		}
		d := p.Root.Dag.List[n.Dag.Dependents[last]]
		n.Dag.Dependents = n.Dag.Dependents[:last]
		if both {
			d.Dag.Deps = slices.DeleteFunc(d.Dag.Deps, func(dep int) bool { return dep == n.Dag.Index })
		}
		return
	}
}

// forgetCompensations removes the compensations of steps with several units.
func forgetCompensations(scope *flow.PlanScope) {
	for _, n := range scope.Nodes {
		switch n.Kind {
		case flow.KindParallel, flow.KindForeach, flow.KindFanout:
			n.Undo = ""
		}
		if n.Sub != nil {
			forgetCompensations(n.Sub)
		}
	}
}

// sleepless is a store that loses the beginnings of waits of functions when tasks are loaded.
type sleepless struct{ persistence.Store }

func (s sleepless) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	records, err := s.Store.Load(ctx, ids)
	for _, r := range records {
		for i := 0; r != nil && i < len(r.Rows); i++ {
			events, _ := flow.DecodeEvents(r.Rows[i].Events)
			kept := slices.DeleteFunc(events, func(e flow.Event) bool { return e.Type == flow.WaitStarted })
			if len(kept) > 0 {
				r.Rows[i].Events = flow.AppendEvents(nil, kept)
			}
		}
	}
	return records, err
}
