package flow

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Outline is what is known of a task without its journal.
type Outline struct {
	Task, Version                 string
	Status                        TaskStatus
	Cursor, LastAction, Error     string
	Params                        json.RawMessage
	Steps, Followed               int
	Paused                        bool
	CreatedAt, UpdatedAt, EndedAt int64
}

// State is a task of which nothing else can be read: it has no steps. Without a plan, because that
// cannot be read either, it is of one that has no nodes. It is the only state that events have not
// made what it is.
func (o Outline) State(plan *Plan) *State {
	if plan == nil {
		plan = &Plan{Root: &PlanScope{}}
	}
	params := o.Params
	if !expr.Valid(params) || expr.Deeper(params, DefaultLimits.Levels) {
		params = json.RawMessage("{}")
	}
	s := NewState(o.Task, plan)
	Evolve(s, &Event{Type: TaskCreated, Version: o.Version, Params: params, At: o.CreatedAt})
	s.Status, s.Error, s.Steps, s.Followed, s.UpdatedAt, s.EndedAt, s.Deadline, s.DeadlineLeft = o.Status, o.Error, o.Steps, o.Followed, o.UpdatedAt, o.EndedAt, 0, 0
	s.Root.Cursor, s.Root.LastAction = o.Cursor, o.LastAction
	if o.Paused {
		s.PausedAt = o.UpdatedAt
	}
	return s
}

// Abandon ends a task that nobody can read, because somebody canceled it: nothing of it can be
// undone, and nothing in flight can be called off.
func Abandon(s *State, now int64, why string) Decision {
	e := Event{Type: TaskEnded, Status: string(TaskCanceled), Error: truncateText("canceled without being read: "+why, maxErrorText), At: now}
	Evolve(s, &e)
	return Decision{Events: []Event{e}, Effects: appendEffects(nil, s, &e)}
}
