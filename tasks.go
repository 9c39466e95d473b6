package troupe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Publish makes a definition (JSON or YAML) the newest version of the flow with this slug. The same
// definition again changes nothing. All problems of a definition are reported at once.
func (e *Engine) Publish(ctx context.Context, slug string, definition []byte) error {
	_, _, err := persistence.Publish(ctx, e.store, persistence.Publication{
		Slug: slug, Definition: definition, Now: time.Now().UnixMilli(), Limits: e.cfg.Limits,
	})
	return err
}

// Option of a task that is being started.
type Option func(*engine.NewTask)

// WithKey makes starting idempotent: the same key for the same flow is the same task.
func WithKey(key string) Option { return func(n *engine.NewTask) { n.Key = key } }

// WithLabels marks a task so that it is found again.
func WithLabels(labels map[string]string) Option {
	return func(n *engine.NewTask) { n.Labels = labels }
}

// Start begins a task of a flow's newest version. params becomes a JSON object; nil is {}.
// When it returns the task is stored.
func (e *Engine) Start(ctx context.Context, slug string, params any, options ...Option) (id string, err error) {
	member, err := e.Member(ctx)
	if err != nil {
		return "", err
	}
	f, err := e.store.FlowBySlug(ctx, slug)
	if err != nil {
		return "", fmt.Errorf("flow %s: %w", slug, err)
	}
	v, err := e.store.FindVersion(ctx, f.ID, 0)
	if err != nil {
		return "", fmt.Errorf("flow %s has no published version: %w", slug, err)
	}
	n := engine.NewTask{VersionID: v.ID, Newest: true}
	if params != nil {
		if n.Params, err = json.Marshal(params); err != nil {
			return "", fmt.Errorf("params: %w", err)
		}
	}
	for _, set := range options {
		set(&n)
	}
	started, err := member.StartTask(ctx, n)
	return started.Task, err
}

// Result is how a task ended.
type Result struct {
	Status flow.TaskStatus
	Error  string          // why it failed
	Value  json.RawMessage // what the flow names as its result, else all of shared
}

// Wait waits until a task has ended. A task that failed or was canceled is no error of Wait.
func (e *Engine) Wait(ctx context.Context, task string) (*Result, error) {
	if err := e.await(ctx, task); err != nil {
		return nil, err
	}
	view, err := e.reader.View(ctx, task)
	if err != nil {
		return nil, err
	}
	return &Result{Status: view.State.Status, Error: view.State.Error, Value: view.State.Result()}, nil
}

// await asks again when the member that it asked was lost meanwhile.
func (e *Engine) await(ctx context.Context, task string) error {
	for {
		member, err := e.Member(ctx)
		if err != nil {
			return err
		}
		if _, err = member.Await(ctx, task); err == nil || ctx.Err() != nil || !e.reborn(member) {
			return err
		}
	}
}

// Signal sets a key of a task's shared state and wakes whoever waits for it.
func (e *Engine) Signal(ctx context.Context, task, key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return e.do(ctx, task, flow.Signal{Key: key, Value: b})
}

// Cancel ends a task. What it is doing is withdrawn.
func (e *Engine) Cancel(ctx context.Context, task string) error {
	return e.do(ctx, task, flow.Cancel{})
}

func (e *Engine) do(ctx context.Context, task string, cmd flow.Command) error {
	member, err := e.Member(ctx)
	if err != nil {
		return err
	}
	_, err = member.Do(ctx, engine.Order{Task: task, Command: cmd})
	return err
}
