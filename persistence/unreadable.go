package persistence

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/flow"
)

// ErrUnreadable reports that this release of Troupe cannot read the journal of a task or its flow
// version.
var ErrUnreadable = errors.New("the task cannot be read")

// Readable reports whether State is complete. If not, State has only the data of the task's row.
func (v *View) Readable() bool { return v.Unreadable == nil }

// outlineView returns a view of an unreadable task. Callers that list many tasks use it, so that
// one unreadable task does not hide the others.
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

// OutlineOf returns a state of a task that has only the data of its row.
func OutlineOf(row *TaskRow, plan *flow.Plan) *flow.State {
	return flow.Outline{
		Task: row.ID, Version: row.VersionID, Status: flow.TaskStatus(row.Status), Cursor: row.Cursor, LastAction: row.LastAction,
		Error: row.Error, Params: row.Params, Steps: row.Steps, Followed: row.Followed, Paused: row.Paused,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, EndedAt: row.EndedAt,
	}.State(plan)
}

// newUnreadableError returns the error for a caller that asks for one unreadable task.
func newUnreadableError(task string, why error) error {
	return &unreadableError{flow.Errorf(flow.Conflict, "task %s: %v; it can be canceled", task, why), why}
}

// unreadableError has the text of flowError and also unwraps to the cause.
type unreadableError struct {
	flowError *flow.Error
	cause     error
}

func (e *unreadableError) Error() string { return e.flowError.Msg }

func (e *unreadableError) Unwrap() []error { return []error{e.flowError, e.cause} }
