package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Runs returns a page of a task's history after a place, limited by a number of runs and the bytes
// of their values.
func (r *Reader) Runs(ctx context.Context, task string, after flow.Place, most, bytes int) (*flow.RunPage, error) {
	p := flow.NewRunPage(after, most, bytes)
	return p, r.Walk(ctx, task, after.Seq, p)
}

// Run returns the run of an attempt, or ErrNotFound if the attempt never began.
func (r *Reader) Run(ctx context.Context, task string, a flow.Address) (*flow.NodeRun, error) {
	p := flow.NewRunOf(a)
	if err := r.Find(ctx, task, p); err != nil {
		return nil, err
	}
	if len(p.Runs) == 0 {
		return nil, ErrNotFound
	}
	return &p.Runs[0], nil
}

// Steps returns a page of the steps of a scope. It returns ErrNotFound if the task does not exist,
// and flow.NotFound if the scope does not exist.
func (r *Reader) Steps(ctx context.Context, task string, q flow.StepQuery) (*flow.StepPage, error) {
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return nil, err
	}
	plan, err := r.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	g := plan.ScopeOf(q.Scope)
	switch {
	case g == nil:
		return nil, errNoScope(q.Scope)
	case g.Mode() == flow.ModeDag:
		return r.dagSteps(ctx, task, q)
	}
	return r.graphSteps(ctx, task, q, false)
}

func errNoScope(scope string) error {
	return flow.Errorf(flow.NotFound, "the task has no scope %.200q", scope)
}

// graphSteps returns the steps of a graph, read from the journal.
func (r *Reader) graphSteps(ctx context.Context, task string, q flow.StepQuery, closing bool) (*flow.StepPage, error) {
	p := flow.NewStepPage(q, closing)
	if err := r.Walk(ctx, task, q.After.Seq, p); err != nil {
		return nil, err
	}
	p.Finish()
	if !p.Known() {
		return nil, errNoScope(q.Scope)
	}
	return p, nil
}

// dagSteps returns the steps of a dag, read from its state. After the steps of the root scope it
// adds the closing steps of the task.
func (r *Reader) dagSteps(ctx context.Context, task string, q flow.StepQuery) (*flow.StepPage, error) {
	s, sc, err := r.findScope(ctx, task, q.Scope)
	if err != nil {
		return nil, err
	}
	p := flow.NodePage(s, sc, q)
	if p.More || q.Scope != "" || s.Closings == 0 {
		return p, nil
	}
	q.Most, q.Bytes = q.Most-len(p.Steps), q.Bytes-p.Size()
	if q.Most < 1 || q.Bytes < 0 {
		p.GoOnBehind(sc)
		return p, nil
	}
	closing, err := r.graphSteps(ctx, task, q, true)
	if err != nil {
		return nil, err
	}
	closing.Steps = append(p.Steps, closing.Steps...)
	return closing, nil
}

// findScope returns the scope with a path in its current state, or in its last state if it has
// ended.
func (r *Reader) findScope(ctx context.Context, task, path string) (*flow.State, *flow.Scope, error) {
	view, err := r.View(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	at, err := r.Sight(ctx, view, path)
	return at.State, at.Scope, err
}

// Units returns the units of a visit of a node; visit 0 means the newest. It returns flow.NotFound
// if the node does not exist. A node that has not begun has no units.
func (r *Reader) Units(ctx context.Context, task string, at flow.Address) (*flow.UnitList, error) {
	if kept := r.lists.get(task, at); kept != nil {
		_, err := r.store.Task(ctx, task) // the task may have been deleted
		return kept, err
	}
	s, sc, err := r.findScope(ctx, task, at.Scope)
	if err != nil {
		return nil, err
	}
	if at.Visit == 0 {
		at.Visit = max(sc.Entered(at.Node), 1)
	}
	if !sc.Has(at.Node) {
		return nil, flow.Errorf(flow.NotFound, "the task has no step %.200q", at.Node)
	}
	l := flow.NewUnitList(at)
	l.From(s)
	if l.Step == nil && sc.Entered(at.Node) >= at.Visit {
		if kept := r.lists.get(task, at); kept != nil { // try again, because the visit is now known
			return kept, nil
		}
		l = flow.NewUnitList(at)
		if err := r.Find(ctx, task, l); err != nil {
			return nil, err
		}
	}
	return l, r.cacheUnits(ctx, task, at, l)
}

// cacheUnits caches the units of a visit that has ended, because a client that reads one page of
// units usually reads the next.
func (r *Reader) cacheUnits(ctx context.Context, task string, at flow.Address, l *flow.UnitList) error {
	if !l.Settled() {
		return nil
	}
	sizes, err := r.measureTasks(ctx, []string{task})
	if err == nil {
		r.lists.put(task, at, l, int(sizes[0])*keepCost+l.Len()*unitCost)
	}
	return err
}
