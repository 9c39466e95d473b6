package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Sight is a scope of a task, and the state in which it is to be seen: that of now, or for a scope
// that is over the last one in which it was there.
type Sight struct {
	State *flow.State
	Scope *flow.Scope
}

// Sight finds a scope of a task that has been read. flow.NotFound when it has not begun.
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

// ViewAt reads a task as it was when a row of its journal had been written; of one that is not
// there yet, as it is. What the task's own row says is that of now.
func (r *Reader) ViewAt(ctx context.Context, task string, row int64) (*View, error) {
	now, err := r.store.Task(ctx, task)
	if err != nil {
		return nil, err
	}
	w := flow.NewRewind(row)
	if err := r.Walk(ctx, task, row, w); err != nil {
		return nil, err
	}
	if w.Seq == 0 { // there is nothing behind the last checkpoint
		return r.View(ctx, task)
	}
	v := &View{TaskRow: *now, State: w.State, Seq: w.Seq}
	return v.checkBegun()
}
