package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Sight is a scope of a task, and the state in which it is to be seen: that of now, or for a scope that is over the last one
// in which it was there.
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
