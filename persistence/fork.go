package persistence

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/flow"
)

// Fork plans a task of the given version that continues from the history of another task of the
// same flow; see flow.PlanFork. It returns ErrNotFound if that task does not exist.
func (r *Reader) Fork(ctx context.Context, task, version string, at ForkAt) (plan flow.ForkPlan, err error) {
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return plan, err
	}
	before, err := r.Plan(ctx, row.VersionID)
	if err != nil {
		return plan, err
	}
	after, err := r.Plan(ctx, version)
	if err != nil {
		return plan, err
	}
	if after.FlowID != row.FlowID {
		return plan, flow.Errorf(flow.Invalid, "version %s is none of the flow that task %s is of", version, task)
	}
	history, err := r.historyUntil(ctx, task, at.Row)
	if err != nil {
		return plan, err
	}
	return flow.PlanFork(task, history, before, after, flow.ForkPoint{Node: at.Node, Part: at.Row > 0})
}

// Foresee predicts the course of a task with the given start. It reuses the history of another task
// of the same flow as far as both are equal; see flow.Foresee. It uses no history if task is "" or
// the history is too large.
func (r *Reader) Foresee(ctx context.Context, task string, start flow.Start, env flow.Env) (told flow.Foresight, err error) {
	after, err := r.Plan(ctx, start.Version)
	switch {
	case err != nil:
		return told, err
	case task == "":
		return flow.Foresee(after, start, nil, after, env)
	}
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return told, err
	}
	before, err := r.Plan(ctx, row.VersionID)
	if err != nil {
		return told, err
	}
	history, err := r.historyUntil(ctx, task, 0)
	if err != nil && flow.ErrorKindOf(err) != flow.Limit {
		return told, err
	}
	return flow.Foresee(after, start, history, before, env)
}

// ForkAt is the position in a task's history from which a fork continues. Zero means its end.
type ForkAt struct {
	Node string // as in flow.ForkPoint
	Row  int64  // sequence number of the last journal row to use; 0 means all rows
}

// errEnough ends the reading of a journal early.
var errEnough = errors.New("enough was read")

// historyUntil returns the events of a task up to a row; 0 means all. It returns an error if they
// exceed flow.MaxFork bytes.
func (r *Reader) historyUntil(ctx context.Context, task string, last int64) (history []flow.Event, err error) {
	read, seen := 0, int64(0)
	err = r.eachRow(ctx, task, 0, func(row Row, events []flow.Event) error {
		if read += len(row.Events); read > flow.MaxFork {
			return flow.Errorf(flow.Limit, "the history of task %s has more than the %d bytes "+
				"that a fork may have: start a new task", task, flow.MaxFork)
		}
		history, seen = append(history, events...), row.Seq
		if seen == last {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return history, nil
	case err == nil && len(history) == 0:
		return nil, ErrNotFound
	case err == nil && last > 0:
		return nil, flow.Errorf(flow.Invalid, "the history of task %s has %d rows, and none with the number %d", task, seen, last)
	}
	return history, err
}
