package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

type (
	// Task is a task with its state and output.
	Task = wire.Task
	// TaskSummary is a task as lists show it.
	TaskSummary = wire.TaskSummary
	// Step is a visit of a node.
	Step = wire.Step
	// StepName names a step of a task.
	StepName = wire.StepName
	// Unit is one item of a step with several units.
	Unit = wire.Unit
	// Run is one attempt of a unit.
	Run = wire.Run
	// Event is one entry of the journal of a task.
	Event = wire.Event
	// Waiting lists the reasons why a task waits.
	Waiting = wire.WaitReasons
	// Digest sums up the progress of a task's nodes, without values.
	Digest = wire.Digest
	// Trace holds the spans of a task in the JSON of OpenTelemetry's protocol.
	Trace = wire.Trace
	// UnitStates holds the state of each unit of a step.
	UnitStates = wire.UnitStates
	// TaskCount is a number of tasks, exact or at least.
	TaskCount = wire.TaskCount
	// Fork is the request to start a task from a point in the history of another one.
	Fork = wire.ForkRequest
	// Forked reports the task that a fork started, and which results it kept.
	Forked = wire.ForkResult
	// Comparison lists the differences between two tasks.
	Comparison = wire.Comparison
	// Timeline holds the times of steps and attempts.
	Timeline = wire.Timeline
	// Rerun is the request to start a task that repeats another one from the beginning.
	Rerun = wire.RerunRequest
	// Reran reports the task that a rerun started.
	Reran = wire.RerunResult
	// Try is the request to start a task of a definition that is not published.
	Try = wire.TrialRequest
	// Tried reports the task of such a try.
	Tried = wire.TrialResult
	// Bulk is the request to apply one operation to many tasks.
	Bulk = wire.BulkRequest
	// TaskFilter picks the tasks of a bulk operation.
	TaskFilter = wire.TaskFilter
	// BulkDone reports how many tasks a bulk operation changed.
	BulkDone = wire.BulkResult
	// Append adds units to a fanout that has started.
	Append = wire.AppendUnits
	// Complete ends a unit whose route is direct.
	Complete = wire.CompleteRequest
	// Completed reports whether the unit changed, and its task.
	Completed = wire.CompleteResult

	// Page is a part of a list. Next is the cursor of the part after it, "" at the end.
	Page[T any] = wire.Page[T]
	// Paging selects a part of a list. The zero value is its beginning.
	Paging = client.Paging
	// TaskQuery picks tasks. Zero fields do not filter.
	TaskQuery = client.TaskQuery
	// StepQuery picks steps of a task. Zero fields do not filter.
	StepQuery = client.StepQuery
	// TimelineQuery picks the parts of a timeline. The zero value is all of the task's root.
	TimelineQuery = client.TimelineQuery
	// ValueQuery gives the place of a value. The zero value is the task itself.
	ValueQuery = client.ValueQuery
)

// All reads a list page by page. It ends after the first error.
//
//	page := func(cursor string) (*troupe.Page[troupe.TaskSummary], error) {
//		return engine.Tasks(ctx, troupe.TaskQuery{Paging: troupe.Paging{Cursor: cursor}})
//	}
//	for task, err := range troupe.All(page) { … }
func All[T any](read func(cursor string) (*Page[T], error)) iter.Seq2[T, error] {
	return client.All(read)
}

// WithRequest gives the operations called with the context a request id. A signal, retry or append
// with the same id takes effect once, even if another process repeats it.
func WithRequest(ctx context.Context, id string) context.Context { return client.WithRequest(ctx, id) }

// withTypedError returns an answer with its error converted to an error of this package.
func withTypedError[T any](answer *T, err error) (*T, error) {
	if err != nil {
		return nil, toTypedError(err)
	}
	return answer, nil
}

// Tasks searches tasks, newest first.
func (e *taskCalls) Tasks(ctx context.Context, q TaskQuery) (*Page[TaskSummary], error) {
	return withTypedError(e.client.Tasks(ctx, q))
}

// CountTasks counts the tasks that Tasks lists, up to 10,000. It groups them by state, flow or
// label:NAME, or not at all for ""; by state, it counts up to 10,000 of each.
func (e *taskCalls) CountTasks(ctx context.Context, q TaskQuery, by string) (*TaskCount, error) {
	return withTypedError(e.client.CountTasks(ctx, q, by))
}

// Task reads the present state of a task.
func (e *taskCalls) Task(ctx context.Context, id string) (*Task, error) {
	return withTypedError(e.client.Task(ctx, id))
}

// WaitForStep waits until a step at the top level of a task has ended, and returns it. The step is
// NODE, or NODE#2 for its second visit; for a function the name of a step. It returns an error if
// the task ends without the step.
func (e *taskCalls) WaitForStep(ctx context.Context, task, step string) (*Step, error) {
	return withTypedError(e.client.WaitForStep(ctx, task, step))
}

// Steps lists the steps of a task, or of a scope in it, with their outputs.
func (e *taskCalls) Steps(ctx context.Context, task string, q StepQuery) (*Page[Step], error) {
	return withTypedError(e.client.Steps(ctx, task, q))
}

// Units lists the units of a step with their inputs and outputs; visit 0 is the newest visit.
func (e *taskCalls) Units(ctx context.Context, task string, q StepQuery, visit int) (*Page[Unit], error) {
	return withTypedError(e.client.Units(ctx, task, q, visit))
}

// Events reads the history of a task after an event, oldest first; after "" is the beginning.
func (e *taskCalls) Events(ctx context.Context, task, after string, limit int) (*Page[Event], error) {
	return withTypedError(e.client.Events(ctx, task, after, limit))
}

// Runs reads the attempts and steps of a task, in the order in which they started.
func (e *taskCalls) Runs(ctx context.Context, task string, p Paging) (*Page[Run], error) {
	return withTypedError(e.client.Runs(ctx, task, p))
}

// UnitStates returns the states of all units of a step in one answer; visit 0 is the newest visit.
func (e *taskCalls) UnitStates(ctx context.Context, task, scope, step string, visit int) (*UnitStates, error) {
	return withTypedError(e.client.UnitStates(ctx, task, scope, step, visit))
}

// Digest returns the progress of the nodes in some scopes of a task, without values. Without
// scopes, it covers the root and the scopes of compensations and finally.
func (e *taskCalls) Digest(ctx context.Context, task string, scopes ...string) (*Digest, error) {
	return withTypedError(e.client.Digest(ctx, task, scopes...))
}

// DigestAt returns the Digest of a task as of a row of its journal: the row of the events with that
// Seq.
func (e *taskCalls) DigestAt(ctx context.Context, task string, row int64, scopes ...string) (*Digest, error) {
	return withTypedError(e.client.DigestAt(ctx, task, row, scopes...))
}

// Timeline returns when the visits of a scope were active, which events they waited for, and which
// visits delayed the end of the scope.
func (e *taskCalls) Timeline(ctx context.Context, task string, q TimelineQuery) (*Timeline, error) {
	return withTypedError(e.client.Timeline(ctx, task, q))
}

// Compare compares two tasks, node by node.
func (e *taskCalls) Compare(ctx context.Context, a, b string) (*Comparison, error) {
	return withTypedError(e.client.Compare(ctx, a, b))
}

// Trace returns the spans of a task in the JSON of OpenTelemetry's protocol.
func (e *taskCalls) Trace(ctx context.Context, task string) (*Trace, error) {
	return withTypedError(e.client.Trace(ctx, task))
}

// Value reads one value of a task as it is stored. of selects it: params, shared, result, or output
// of a step, for example.
func (e *taskCalls) Value(ctx context.Context, task, of string, at ValueQuery) (json.RawMessage, error) {
	value, err := e.client.Value(ctx, task, of, at)
	return value, toTypedError(err)
}

// Waiting returns the reasons why a task waits.
func (e *taskCalls) Waiting(ctx context.Context, task string) (*Waiting, error) {
	return withTypedError(e.client.Waiting(ctx, task))
}

// Watch returns the events of a task as they happen, after the given event ("" = from the
// beginning), and ends with the task. Events that the store cannot return at the moment follow
// later.
func (e *taskCalls) Watch(ctx context.Context, task, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// otherwise the client would look for another member
		defer context.AfterFunc(e.closed, cancel)()
		for event, err := range e.client.Watch(ctx, task, after) {
			if err != nil && e.closed.Err() != nil {
				err = errClosed
			}
			if !yield(event, toTypedError(err)) {
				return
			}
		}
	}
}

// Signal sets a key of a task's shared state and wakes the steps that wait for it. No signal is
// lost, even if it comes before the wait.
func (e *steerCalls) Signal(ctx context.Context, task, key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	_, err = e.client.Signal(ctx, task, key, b)
	return e.toSteerError(ctx, task, err)
}

// CancelOption is an option of Cancel.
type CancelOption func(*wire.CancelRequest)

// Gently lets started work finish; the task ends after that. Jobs that no worker has started are
// canceled at once, as are waits and retries.
func Gently(c *wire.CancelRequest) { c.Graceful = true }

// Forced also ends compensations and finally, if the task runs them.
func Forced(c *wire.CancelRequest) { c.Force = true }

// Cancel ends a task: its work in progress is withdrawn, then its completed work is compensated if
// the flow defines that. A task that has ended does not change.
func (e *steerCalls) Cancel(ctx context.Context, task string, options ...CancelOption) error {
	var how wire.CancelRequest
	for _, set := range options {
		set(&how)
	}
	_, err := e.client.CancelHow(ctx, task, how)
	return e.toSteerError(ctx, task, err)
}

// Pause stops a task from starting new work; work in flight continues.
func (e *steerCalls) Pause(ctx context.Context, task string) error {
	_, err := e.client.Pause(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// Resume undoes Pause.
func (e *steerCalls) Resume(ctx context.Context, task string) error {
	_, err := e.client.Resume(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// Retry resumes a failed task where it failed; completed work is not repeated.
func (e *steerCalls) Retry(ctx context.Context, task string) error {
	_, err := e.client.Retry(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// RetryStep resumes a failed task of dag mode with one failed step, and with the steps that were
// skipped because of it. Other failures stay.
func (e *steerCalls) RetryStep(ctx context.Context, task, step string) error {
	_, err := e.client.RetryStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// HoldStep stops a step of dag mode from starting until ReleaseStep. The step is still skipped if a
// dependency fails.
func (e *steerCalls) HoldStep(ctx context.Context, task string, step StepName) error {
	_, err := e.client.HoldStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// ReleaseStep undoes HoldStep.
func (e *steerCalls) ReleaseStep(ctx context.Context, task string, step StepName) error {
	_, err := e.client.ReleaseStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// Fork starts a task that continues from the history of an ended task, with another version, from
// another node or with other params. In a dry run it only reports which steps are kept and which
// are repeated.
func (e *steerCalls) Fork(ctx context.Context, task string, f Fork) (*Forked, error) {
	forked, err := e.client.Fork(ctx, task, f)
	return forked, e.toSteerError(ctx, task, err)
}

// Rerun starts a task that repeats another one from the beginning, with the same params and version
// or with others.
func (e *steerCalls) Rerun(ctx context.Context, task string, r Rerun) (*Reran, error) {
	return withTypedError(e.client.Rerun(ctx, task, r))
}

// Try starts a task of an unpublished definition; both are deleted a day later. The definition is
// checked as by Publish.
func (e *steerCalls) Try(ctx context.Context, definition []byte, t Try) (*Tried, error) {
	return withTypedError(e.client.Try(ctx, definition, t))
}

// Bulk retries, cancels, pauses, resumes, reruns or forks many tasks, up to 1,000 per call. Each
// task accepts or rejects the command separately; the answer gives the reasons. Pass Next of the
// answer as Cursor to continue.
func (e *steerCalls) Bulk(ctx context.Context, b Bulk) (*BulkDone, error) {
	return withTypedError(e.client.Bulk(ctx, b))
}

// Append adds units to a fanout that has started, and returns their indexes.
func (e *steerCalls) Append(ctx context.Context, task string, a Append) ([]int, error) {
	added, err := e.client.Append(ctx, task, a)
	if err != nil {
		return nil, e.toSteerError(ctx, task, err)
	}
	return added.Units, nil
}

// Complete ends a unit whose route is direct, with an output or an error. A unit that has ended
// does not change; Changed reports that.
func (e *steerCalls) Complete(ctx context.Context, task string, u Complete) (*Completed, error) {
	done, err := e.client.Complete(ctx, task, u)
	return done, e.toSteerError(ctx, task, err)
}

// toSteerError converts an error, and adds ErrEnded to a conflict if the task has ended. It reads
// that from the task's row.
func (e *steerCalls) toSteerError(ctx context.Context, task string, err error) error {
	err = toTypedError(err)
	var r *classifiedError
	if !errors.As(err, &r) || !errors.Is(err, ErrConflict) {
		return err
	}
	if row, missing := e.tasks.Task(ctx, task); missing == nil && flow.TaskStatus(row.Status).Ended() {
		r.is = append(r.is, ErrEnded)
	}
	return err
}
