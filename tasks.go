package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/tasks"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Option is an option of a task to start.
type Option func(*taskStart)

// taskStart holds the request of a start.
type taskStart struct {
	engine.NewTask
	version int // 0 = newest
}

// WithKey makes the start idempotent: the same key for the same flow is the same task.
func WithKey(key string) Option { return func(s *taskStart) { s.Key = key } }

// WithLabels adds labels to a task, to search for it.
func WithLabels(labels map[string]string) Option { return func(s *taskStart) { s.Labels = labels } }

// WithVersion starts a task of the version with this number instead of the newest one.
func WithVersion(number int) Option { return func(s *taskStart) { s.version = number } }

// WithTrace starts a task below a span of the caller. parent and state are the headers traceparent
// and tracestate of W3C Trace Context ("" = none). An invalid parent is ignored.
func WithTrace(parent, state string) Option {
	return func(s *taskStart) { s.Traced = flow.ReadTraced(parent, state) }
}

// Start starts a task of a flow, named by its slug or id: of its newest version, unless an option
// names another one. params is converted to JSON, for a graph to an object; nil is {}. When Start
// returns, the task is stored.
func (e *Engine) Start(ctx context.Context, name string, params any, options ...Option) (id string, err error) {
	member, err := e.Member(ctx)
	if err != nil {
		return "", err
	}
	if err := engine.CheckStore(member); err != nil {
		return "", toTypedError(err)
	}
	n, err := e.newTask(ctx, name, params, options)
	if err != nil {
		return "", err
	}
	started, err := member.StartTask(ctx, n)
	return started.Task, toTypedError(err)
}

// newTask returns the request for the member.
func (e *Engine) newTask(ctx context.Context, name string, params any, options []Option) (engine.NewTask, error) {
	var s taskStart
	for _, set := range options {
		set(&s)
	}
	v, err := e.versionOf(ctx, name, s.version)
	if err != nil {
		return s.NewTask, err
	}
	var wrong *flow.Error
	if errors.As(tasks.CheckLabels(s.Labels), &wrong) {
		return s.NewTask, toTypedError(wrong)
	}
	s.VersionID, s.Newest = v.ID, s.version == 0
	if params != nil {
		if s.Params, err = json.Marshal(params); err != nil {
			return s.NewTask, fmt.Errorf("params: %w", err)
		}
	}
	return s.NewTask, nil
}

// versionOf finds a version of a flow; 0 is the newest one.
func (e *Engine) versionOf(ctx context.Context, name string, number int) (*persistence.Version, error) {
	f, err := e.stores.Newest.FlowBySlug(ctx, name)
	if api.Missing(err) {
		f, err = e.stores.Newest.Flow(ctx, name)
	}
	if api.Missing(err) {
		return nil, newNotFoundError(err, "there is no flow %.140q: publish it first", name)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the flow %.140q: %w", name, err)
	}
	v, err := e.stores.Newest.FindVersion(ctx, f.ID, number)
	switch {
	case api.Missing(err) && number == 0:
		return nil, newNotFoundError(err, "flow %.140q has no published version", name)
	case api.Missing(err):
		return nil, newNotFoundError(err, "flow %.140q has no version %d", name, number)
	case err != nil:
		return nil, fmt.Errorf("looking for a version of the flow %.140q: %w", name, err)
	}
	return v, nil
}

// Result is the end of a task.
type Result struct {
	Status flow.TaskStatus
	Error  string // why it failed
	// number of failed steps after which it continued, because of on_error: follow
	Followed int
	// the result that the flow names, otherwise all of shared; nil if a task that has not completed
	// has none
	Value json.RawMessage
}

// Wait waits until a task has ended. A failed or canceled task is not an error of Wait.
func (e *Engine) Wait(ctx context.Context, task string) (*Result, error) {
	if err := e.awaitTask(ctx, task); err != nil {
		return nil, toTypedError(err)
	}
	view, err := e.stores.Reader.View(ctx, task)
	if api.Missing(err) {
		return nil, newNotFoundError(err, "there is no task %.210q: it has been deleted", task)
	}
	if err != nil {
		return nil, err
	}
	value, err := e.stores.Payloads.Whole(view.State.Result())
	if err != nil {
		return nil, toTypedError(err)
	}
	if view.State.Status != flow.TaskCompleted && string(value) == "null" {
		value = nil
	}
	return &Result{Status: view.State.Status, Error: view.State.Error, Followed: view.State.Followed, Value: value}, nil
}

// awaitTask waits for the end of a task; if the member that it asked is lost meanwhile, it asks the
// next one.
func (e *Engine) awaitTask(ctx context.Context, task string) error {
	for {
		member, err := e.Member(ctx)
		if err != nil {
			return err
		}
		if _, err = member.Await(ctx, task); err == nil || ctx.Err() != nil || !e.wasReplaced(member) {
			return err
		}
	}
}
