package api

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Unfinished holds the states of tasks that have not ended.
var Unfinished = []string{string(flow.TaskPending), string(flow.TaskRunning), string(flow.TaskCanceling)}

// deletePart is the number of tasks deleted at once.
const deletePart = 500

// DeleteFlow deletes a flow with all its tasks, and returns the number of tasks. It first cancels
// unfinished tasks.
func DeleteFlow(ctx context.Context, e engine.Engine, store Store, id string) (tasks int, err error) {
	err = cancelAll(ctx, e, store, id)
	for n := deletePart; err == nil && n == deletePart; tasks += n {
		n, err = store.DeleteFlow(ctx, id, deletePart)
	}
	if errors.Is(err, persistence.ErrHeld) {
		return tasks, flow.Errorf(flow.Conflict,
			"the flow cannot be deleted, because a transaction in which a task of it was "+
				"started (StartTx) is still open: "+
				"commit it or roll it back, and delete the flow again; what was under way is canceled")
	}
	return tasks, err
}

// cancelAll cancels all unfinished tasks of a flow that is about to be deleted.
func cancelAll(ctx context.Context, e engine.Engine, store Store, flowID string) error {
	unfinished := persistence.TaskFilter{FlowID: flowID, Statuses: Unfinished, Limit: deletePart}
	for {
		rows, err := store.ListTasks(ctx, unfinished)
		if err != nil || len(rows) == 0 {
			return err
		}
		// the forced cancel also ends running compensations
		for _, how := range []flow.Cancel{{}, {Force: true}} {
			if err := cancelEach(ctx, e, rows, how); err != nil {
				return err
			}
		}
	}
}

// cancelEach cancels several tasks at once, so that they share commits. It skips tasks that no
// longer exist.
func cancelEach(ctx context.Context, e engine.Engine, rows []persistence.TaskRow, how flow.Cancel) error {
	orders := make(engine.Orders, len(rows))
	for i := range rows {
		orders[i] = engine.Order{Task: rows[i].ID, Command: how}
	}
	outcomes, err := e.DoAll(ctx, orders)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Err != nil && !Missing(o.Err) {
			return o.Err
		}
	}
	return nil
}
