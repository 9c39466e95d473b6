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
	Waiting = wire.Waiting
	// Digest sums up how a task failed.
	Digest = wire.Digest
	// Trace is the trace that a task belongs to.
	Trace = wire.Trace
	// UnitStates holds the state of each unit of a step.
	UnitStates = wire.UnitStates
	// TaskCount is a number of tasks, exact or at least.
	TaskCount = wire.TaskCount
	// Fork starts a task from a point in the history of another one.
	Fork = wire.Fork
	// Forked reports the task that a fork started, and what it kept.
	Forked = wire.Forked
	// Comparison lists the differences between two tasks.
	Comparison = wire.Comparison
	// Timeline holds the times of steps and attempts.
	Timeline = wire.Timeline
	// Rerun runs a step and what follows it again.
	Rerun = wire.Rerun
	// Reran reports the steps that a rerun takes back.
	Reran = wire.Reran
	// Try runs one node with a given input, without a task.
	Try = wire.Try
	// Tried reports the result of such a run.
	Tried = wire.Tried
	// Bulk applies one operation to many tasks.
	Bulk = wire.Bulk
	// TaskFilter picks the tasks of a bulk operation.
	TaskFilter = wire.TaskFilter
	// BulkDone reports how many tasks a bulk operation changed.
	BulkDone = wire.BulkDone
	// Append adds units to a foreach that accepts more.
	Append = wire.Append
	// Complete completes a step from outside.
	Complete = wire.Complete
	// Completed reports the step that was completed.
	Completed = wire.Completed

	// Page is a part of a list. Next is the cursor of the part after it, "" at the end.
	Page[T any] = wire.Page[T]
	// Paging says which part of a list is meant. The zero value is its beginning.
	Paging = client.Paging
	// TaskQuery picks tasks. Zero fields do not filter.
	TaskQuery = client.TaskQuery
	// StepQuery picks steps of a task. Zero fields do not filter.
	StepQuery = client.StepQuery
	// TimelineQuery picks what is told of a timeline. The zero value is all of the task's root.
	TimelineQuery = client.TimelineQuery
	// ValueQuery says where a value is. The zero value is the task itself.
	ValueQuery = client.ValueQuery
)

// All reads a list page by page. It ends after the first error.
//
//	for task, err := range troupe.All(func(cursor string) (*troupe.Page[troupe.TaskSummary], error) {
//		return engine.Tasks(ctx, troupe.TaskQuery{Paging: troupe.Paging{Cursor: cursor}})
//	}) { … }
func All[T any](read func(cursor string) (*Page[T], error)) iter.Seq2[T, error] {
	return client.All(read)
}

// WithRequest names what is asked for with a context, so that a signal, a retry or an append may be
// given again, by another process too, and has its effect once.
func WithRequest(ctx context.Context, id string) context.Context { return client.WithRequest(ctx, id) }

// withTypedError is an answer with its error in our words.
func withTypedError[T any](answer *T, err error) (*T, error) {
	if err != nil {
		return nil, toTypedError(err)
	}
	return answer, nil
}

// Tasks searches tasks, newest first.
func (e *Engine) Tasks(ctx context.Context, q TaskQuery) (*Page[TaskSummary], error) {
	return withTypedError(e.client.Tasks(ctx, q))
}

// CountTasks counts what Tasks lists, up to 10,000, by state up to so many of each; by is state,
// flow, label:NAME or "".
func (e *Engine) CountTasks(ctx context.Context, q TaskQuery, by string) (*TaskCount, error) {
	return withTypedError(e.client.CountTasks(ctx, q, by))
}

// Task reads a task as it is at this moment.
func (e *Engine) Task(ctx context.Context, id string) (*Task, error) {
	return withTypedError(e.client.Task(ctx, id))
}

// Steps lists the steps of a task, or of a scope in it, with their outputs.
func (e *Engine) Steps(ctx context.Context, task string, q StepQuery) (*Page[Step], error) {
	return withTypedError(e.client.Steps(ctx, task, q))
}

// Units lists the units of a step with their inputs and outputs; of its visits the one with a
// number, or the newest for 0.
func (e *Engine) Units(ctx context.Context, task string, q StepQuery, visit int) (*Page[Unit], error) {
	return withTypedError(e.client.Units(ctx, task, q, visit))
}

// Events reads a task's history, oldest first, from behind an event on; "" = from the beginning.
func (e *Engine) Events(ctx context.Context, task, after string, limit int) (*Page[Event], error) {
	return withTypedError(e.client.Events(ctx, task, after, limit))
}

// Runs reads a task's attempts and steps, in order of their beginning.
func (e *Engine) Runs(ctx context.Context, task string, p Paging) (*Page[Run], error) {
	return withTypedError(e.client.Runs(ctx, task, p))
}

// UnitStates tells the states of all units of a step at once; of its visits the one with a number,
// or the newest for 0.
func (e *Engine) UnitStates(ctx context.Context, task, scope, step string, visit int) (*UnitStates, error) {
	return withTypedError(e.client.UnitStates(ctx, task, scope, step, visit))
}

// Digest tells how far the nodes of a task's scopes are, without values; none = its root, and where
// it undoes and cleans up.
func (e *Engine) Digest(ctx context.Context, task string, scopes ...string) (*Digest, error) {
	return withTypedError(e.client.Digest(ctx, task, scopes...))
}

// DigestAt is Digest of a task as it was when a row of its journal had been written: that of the
// events with that Seq.
func (e *Engine) DigestAt(ctx context.Context, task string, row int64, scopes ...string) (*Digest, error) {
	return withTypedError(e.client.DigestAt(ctx, task, row, scopes...))
}

// Timeline tells when the visits of a scope were under way, what they waited for, and which of them
// its end waited for.
func (e *Engine) Timeline(ctx context.Context, task string, q TimelineQuery) (*Timeline, error) {
	return withTypedError(e.client.Timeline(ctx, task, q))
}

// Compare puts what two tasks did beside each other, node by node.
func (e *Engine) Compare(ctx context.Context, a, b string) (*Comparison, error) {
	return withTypedError(e.client.Compare(ctx, a, b))
}

// Trace tells a task as a trace, as OpenTelemetry's protocol has it.
func (e *Engine) Trace(ctx context.Context, task string) (*Trace, error) {
	return withTypedError(e.client.Trace(ctx, task))
}

// Value reads one value of a task as it is: of says which, such as params, shared, result, or
// output of a step.
func (e *Engine) Value(ctx context.Context, task, of string, at ValueQuery) (json.RawMessage, error) {
	value, err := e.client.Value(ctx, task, of, at)
	return value, toTypedError(err)
}

// Waiting tells why a task is waiting.
func (e *Engine) Waiting(ctx context.Context, task string) (*Waiting, error) {
	return withTypedError(e.client.Waiting(ctx, task))
}

// Watch gives a task's events as they happen, from behind an event on ("" = from the beginning),
// and ends with the task. What the store does not tell for a while it tells later.
func (e *Engine) Watch(ctx context.Context, task, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(e.ctx, cancel)() // it would look for another member
		for event, err := range e.client.Watch(ctx, task, after) {
			if err != nil && e.ctx.Err() != nil {
				err = errClosed
			}
			if !yield(event, toTypedError(err)) {
				return
			}
		}
	}
}

// Signal sets a key of a task's shared state and wakes whoever waits for it. No signal is lost,
// whenever it comes.
func (e *Engine) Signal(ctx context.Context, task, key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	_, err = e.client.Signal(ctx, task, key, b)
	return e.toSteerError(ctx, task, err)
}

// CancelOption says how a task is canceled.
type CancelOption func(*wire.Cancel)

// Gently lets what has begun go on; the task ends when that is done. What no worker has begun is
// canceled at once, as are waits and retries.
func Gently(c *wire.Cancel) { c.Gently = true }

// Forced also ends compensations and finally, when the task is at them.
func Forced(c *wire.Cancel) { c.Force = true }

// Cancel ends a task: what it is doing is withdrawn, then what it has done is undone, if its flow
// says how. One that has ended stays as it is.
func (e *Engine) Cancel(ctx context.Context, task string, options ...CancelOption) error {
	var how wire.Cancel
	for _, set := range options {
		set(&how)
	}
	_, err := e.client.CancelHow(ctx, task, how)
	return e.toSteerError(ctx, task, err)
}

// Pause keeps anything new of a task from starting; what is in flight goes on.
func (e *Engine) Pause(ctx context.Context, task string) error {
	_, err := e.client.Pause(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// Resume undoes Pause.
func (e *Engine) Resume(ctx context.Context, task string) error {
	_, err := e.client.Resume(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// Retry has a failed task go on where it failed; what completed is not done again.
func (e *Engine) Retry(ctx context.Context, task string) error {
	_, err := e.client.Retry(ctx, task)
	return e.toSteerError(ctx, task, err)
}

// RetryStep has a failed task of dag mode go on with one step that failed, and with what was
// skipped because of it; what else failed stays so.
func (e *Engine) RetryStep(ctx context.Context, task, step string) error {
	_, err := e.client.RetryStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// HoldStep keeps a step of dag mode that has yet to begin from beginning, until ReleaseStep. It is
// still skipped when what it depends on fails.
func (e *Engine) HoldStep(ctx context.Context, task string, step StepName) error {
	_, err := e.client.HoldStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// ReleaseStep undoes HoldStep.
func (e *Engine) ReleaseStep(ctx context.Context, task string, step StepName) error {
	_, err := e.client.ReleaseStep(ctx, task, step)
	return e.toSteerError(ctx, task, err)
}

// Fork starts a task that goes on from the history of one that has ended, with another version,
// from another node or with other params, or tells what that one would keep and do again.
func (e *Engine) Fork(ctx context.Context, task string, f Fork) (*Forked, error) {
	forked, err := e.client.Fork(ctx, task, f)
	return forked, e.toSteerError(ctx, task, err)
}

// Rerun starts a task that does again what another one does, from the beginning: with its params
// and its version, or with others.
func (e *Engine) Rerun(ctx context.Context, task string, r Rerun) (*Reran, error) {
	return withTypedError(e.client.Rerun(ctx, task, r))
}

// Try starts a task of a definition that stays unpublished: a day later both are deleted. It is
// checked as by Publish.
func (e *Engine) Try(ctx context.Context, definition []byte, t Try) (*Tried, error) {
	return withTypedError(e.client.Try(ctx, definition, t))
}

// Bulk retries, cancels, pauses or resumes many tasks, up to 1,000 at once. Each takes the command
// or refuses it by itself; the answer says why. With the Next of that as Cursor it goes on.
func (e *Engine) Bulk(ctx context.Context, b Bulk) (*BulkDone, error) {
	return withTypedError(e.client.Bulk(ctx, b))
}

// Append adds units to a fanout that has begun and gives their indexes.
func (e *Engine) Append(ctx context.Context, task string, a Append) ([]int, error) {
	added, err := e.client.Append(ctx, task, a)
	if err != nil {
		return nil, e.toSteerError(ctx, task, err)
	}
	return added.Units, nil
}

// Complete ends a unit whose route is direct, with an output or an error. One that has ended stays
// as it is; Changed says so.
func (e *Engine) Complete(ctx context.Context, task string, u Complete) (*Completed, error) {
	done, err := e.client.Complete(ctx, task, u)
	return done, e.toSteerError(ctx, task, err)
}

// toSteerError is ErrEnded, too, where what was asked for comes too late. Whether a task has ended
// its row tells at once.
func (e *Engine) toSteerError(ctx context.Context, task string, err error) error {
	err = toTypedError(err)
	var r *classifiedError
	if !errors.As(err, &r) || !errors.Is(err, ErrConflict) {
		return err
	}
	if row, missing := e.store.Task(ctx, task); missing == nil && flow.TaskStatus(row.Status).Ended() {
		r.is = append(r.is, ErrEnded)
	}
	return err
}
