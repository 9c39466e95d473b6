package flow

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Outline is the data about a task that is known without its journal.
type Outline struct {
	Task, Version                 string
	Status                        TaskStatus
	Cursor, LastAction, Error     string
	Params                        json.RawMessage
	Steps, Followed               int
	Paused                        bool
	CreatedAt, UpdatedAt, EndedAt int64
}

// State returns the state of a task whose journal cannot be read; the state has no steps. If the
// plan cannot be read either, plan is nil and the task has no nodes. Every other state is the
// result of its events.
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
	s.Status, s.Error, s.Steps, s.Followed, s.UpdatedAt, s.EndedAt, s.Deadline,
		s.DeadlineLeft = o.Status, o.Error, o.Steps, o.Followed, o.UpdatedAt, o.EndedAt, 0, 0
	s.Root.Cursor, s.Root.LastAction = o.Cursor, o.LastAction
	if o.Paused {
		s.PausedAt = o.UpdatedAt
	}
	return s
}

// Abandon ends an unreadable task that a user has canceled. None of its work can be undone, and no
// attempt in flight can be withdrawn.
func Abandon(s *State, now int64, why string) Decision {
	e := Event{Type: TaskEnded, Status: string(TaskCanceled),
		Error: truncateText("canceled without being read: "+why, maxErrorText), At: now}
	Evolve(s, &e)
	return Decision{Events: []Event{e}, Effects: appendEffects(nil, s, &e)}
}
