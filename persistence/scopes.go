package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Sight is a scope of a task, with the state that contains it: the current state, or the last one
// before the scope ended.
type Sight struct {
	State *flow.State
	Scope *flow.Scope
}

// Sight finds a scope of a loaded task. It returns flow.NotFound if the scope has not begun.
func (r *Reader) Sight(ctx context.Context, v *View, path string) (Sight, error) {
	if sc := v.State.Scope(path); sc != nil {
		return Sight{v.State, sc}, nil
	}
	w := flow.NewScopeWalk(path)
	if err := r.Find(ctx, v.ID, w); err != nil {
		return Sight{}, err
	}
	if w.Scope == nil {
		return Sight{}, errNoScope(path)
	}
	return Sight{w.State, w.Scope}, nil
}

// ViewAt returns a task as it was after a row of its journal, or in its current state if that row
// does not exist yet. The columns of TaskRow are the current ones.
func (r *Reader) ViewAt(ctx context.Context, task string, row int64) (*View, error) {
	now, err := r.store.Task(ctx, task)
	if err != nil {
		return nil, err
	}
	w := flow.NewRewind(row)
	if err := r.Walk(ctx, task, row, w); err != nil {
		return nil, err
	}
	if w.Seq == 0 { // nothing follows the last checkpoint
		return r.View(ctx, task)
	}
	v := &View{TaskRow: *now, State: w.State, Seq: w.Seq}
	return v.checkBegun()
}
