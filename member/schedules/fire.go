package schedules

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// unfinishedStates are the states of tasks that a slot may have to wait for.
var unfinishedStates = []string{string(flow.TaskPending), string(flow.TaskRunning), string(flow.TaskCanceling)}

// maxRunning is the maximum number of unfinished tasks that are read for a schedule.
const maxRunning = 1000

// processSchedule handles a due schedule: it decides, stores the decision, and starts tasks. After
// a temporary failure it schedules a retry.
func (r *Runner) processSchedule(s *persistence.Schedule) {
	ctx, cancel := r.host.Within(r.ctx, callTimeout)
	defer cancel()
	waits, err := r.advanceSchedule(ctx, s)
	switch {
	case errors.Is(err, persistence.ErrStale) || errors.Is(err, persistence.ErrNotFound):
		s.Due = r.nowMillis() // it was changed or deleted, so the current version is read next
		r.clearPause(s.ID)
	case err != nil:
		if r.pauseSchedule(s.ID, true) && r.ctx.Err() == nil {
			r.opts.Logger.Warn("starting tasks of a schedule failed, retrying", "schedule", s.Name, "error", err)
		}
	case waits:
		r.pauseSchedule(s.ID, false)
	default:
		r.clearPause(s.ID)
	}
}

// advanceSchedule makes and carries out one decision about a schedule. waits is true if a task has
// to end before anything can be decided.
func (r *Runner) advanceSchedule(ctx context.Context, s *persistence.Schedule) (waits bool, err error) {
	rule, err := schedule.Read(s.Spec)
	if err != nil {
		return false, fmt.Errorf("reading when it fires: %w", err)
	}
	if len(s.State.Starts) == 0 {
		running, err := r.runningOf(ctx, s)
		if err != nil {
			return false, err
		}
		next := rule.Decide(s.ID, s.State, r.nowMillis(), running)
		if reflect.DeepEqual(next, s.State) {
			return true, nil
		}
		s.State = next
		if err := r.storeState(ctx, rule, s); err != nil {
			return false, err
		}
	}
	if len(s.State.Starts) == 0 {
		return false, nil
	}
	err = r.startTasks(ctx, s)
	return false, errors.Join(err, r.storeState(ctx, rule, s))
}

// storeState stores the state of a schedule and the time when the schedule is due next.
func (r *Runner) storeState(ctx context.Context, rule *schedule.Rule, s *persistence.Schedule) error {
	s.Due = rule.Looks(s.ID, s.State)
	if err := r.opts.Store.PutSchedule(ctx, *s); err != nil {
		return err
	}
	s.Revision++
	return nil
}

// runningOf returns the unfinished tasks of a schedule. It returns nil if the schedule does not
// depend on them.
func (r *Runner) runningOf(ctx context.Context, s *persistence.Schedule) (tasks []string, err error) {
	if s.Spec.OrDefault().Overlap == schedule.OverlapAllow && s.State.Queued == 0 {
		return nil, nil
	}
	rows, err := r.opts.Store.ListTasks(ctx, persistence.TaskFilter{
		FlowID: s.FlowID, Labels: map[string]string{schedule.LabelName: s.Name}, Statuses: unfinishedStates, Limit: maxRunning,
	})
	for _, row := range rows {
		tasks = append(tasks, row.ID)
	}
	return tasks, err
}

// startTasks starts the tasks of a decision until all have started or a temporary failure occurs.
func (r *Runner) startTasks(ctx context.Context, s *persistence.Schedule) error {
	for len(s.State.Starts) > 0 {
		task, err := r.startSlot(ctx, s, s.State.Starts[0])
		switch {
		case err == nil:
			s.State = s.State.Began(task)
		case isPermanent(err):
			r.opts.Logger.Warn("starting the task of a slot failed", "schedule", s.Name, "slot", s.State.Starts[0].Slot, "error", err)
			s.State = s.State.Failed(err.Error())
		default:
			return err
		}
	}
	return nil
}

// isPermanent reports whether a retry would fail in the same way.
func isPermanent(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Invalid, flow.NotFound, flow.Limit, flow.Denied:
		return true
	}
	return errors.Is(err, persistence.ErrNotFound)
}

// startSlot starts the task of a slot, or returns the task that was started for the slot before.
// That task may have other params, if the schedule was changed since; this is accepted.
func (r *Runner) startSlot(ctx context.Context, s *persistence.Schedule, start schedule.Start) (task string, err error) {
	for _, task := range start.Cancel {
		if _, err := r.opts.Engine.Do(ctx, engine.Order{Task: task,
			Command: flow.Cancel{}}); err != nil && !isPermanent(err) &&
			flow.ErrorKindOf(err) != flow.Conflict {
			return "", fmt.Errorf("canceling task %s: %w", task, err)
		}
	}
	v, err := r.opts.Store.FindVersion(ctx, s.FlowID, 0)
	if err != nil {
		return "", fmt.Errorf("looking for the newest version of its flow: %w", err)
	}
	n := engine.NewTask{VersionID: v.ID, Newest: true, Params: s.Params, Key: schedule.Key(s.ID, start.Slot),
		Labels: schedule.Labels(s.Name, schedule.BySchedule, start.Slot, s.Labels)}
	started, err := r.opts.Engine.StartTask(ctx, n)
	if flow.ErrorKindOf(err) == flow.Conflict {
		return n.TaskID(s.FlowID)
	}
	return started.Task, err
}
