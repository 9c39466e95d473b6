package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Fork plans a task of a version that goes on from the history of another one of the same flow; see flow.PlanFork. ErrNotFound when there is no
// such task.
func (r *Reader) Fork(ctx context.Context, task, version, from string) (plan flow.ForkPlan, err error) {
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
	history, err := r.wholeHistory(ctx, task)
	if err != nil {
		return plan, err
	}
	return flow.PlanFork(task, history, before, after, from)
}

// wholeHistory are all events of a task, unless they are more than a fork may have.
func (r *Reader) wholeHistory(ctx context.Context, task string) (history []flow.Event, err error) {
	read := 0
	err = r.eachRow(ctx, task, 0, func(row Row, events []flow.Event) error {
		if read += len(row.Events); read > flow.MaxFork {
			return flow.Errorf(flow.Limit, "the history of task %s has more than the %d bytes that a fork may have: start a new task", task, flow.MaxFork)
		}
		history = append(history, events...)
		return nil
	})
	if err == nil && len(history) == 0 {
		err = ErrNotFound
	}
	return history, err
}
