package persistence

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/flow"
)

// ErrUnreadable reports that this release of Troupe cannot read the journal of a task, or the
// version of the flow that it runs.
var ErrUnreadable = errors.New("the task cannot be read")

// Readable reports whether a state is all there; else it is what the task's row tells.
func (v *View) Readable() bool { return v.Unreadable == nil }

// outlineView is a view of a task that cannot be read, for those who show many at once: one must
// not hide the others.
func (r *Reader) outlineView(ctx context.Context, rec *Record, why error) *View {
	plan, err := r.Plan(ctx, rec.VersionID)
	if err != nil {
		plan = nil
	}
	v := &View{TaskRow: rec.TaskRow, Unreadable: why}
	v.Error = why.Error()
	v.State = OutlineOf(&v.TaskRow, plan)
	return v
}

// OutlineOf is the state of a task as far as its row tells it.
func OutlineOf(row *TaskRow, plan *flow.Plan) *flow.State {
	return flow.Outline{
		Task: row.ID, Version: row.VersionID, Status: flow.TaskStatus(row.Status), Cursor: row.Cursor, LastAction: row.LastAction,
		Error: row.Error, Params: row.Params, Steps: row.Steps, Followed: row.Followed, Paused: row.Paused,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, EndedAt: row.EndedAt,
	}.State(plan)
}

// newUnreadableError is the answer to whoever asks for one task that cannot be read.
func newUnreadableError(task string, why error) error {
	return &unreadableError{flow.Errorf(flow.Conflict, "task %s: %v; it can be canceled", task, why), why}
}

// unreadableError is for callers what told says, and keeps what it was caused by.
type unreadableError struct {
	flowError *flow.Error
	cause     error
}

func (e *unreadableError) Error() string { return e.flowError.Msg }

func (e *unreadableError) Unwrap() []error { return []error{e.flowError, e.cause} }
