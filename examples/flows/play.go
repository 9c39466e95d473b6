package flows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// Outcome is the result of a task.
type Outcome struct {
	ID             string
	State, Error   string
	Shared, Result json.RawMessage
	Steps          map[string]string // last end of each step, by slug
	Closing        []string
}

// flowRun is a running expectation.
type flowRun struct {
	*Expectation
	server *client.Client
	out    Outcome

	mu     sync.Mutex
	wait   sync.WaitGroup
	failed []error
}

// Play starts a task of the flow with this slug, performs its actions, and follows it to its end.
// It calls look for every event. The Outcome contains the task's id as soon as it has started.
func (e *Expectation) Play(ctx context.Context, server *client.Client, slug string, look func(*wire.Event)) (*Outcome, error) {
	started, err := server.Start(ctx, wire.StartRequest{Flow: slug, Params: e.Params, Input: e.Input})
	if err != nil {
		return &Outcome{}, err
	}
	p := &flowRun{Expectation: e, server: server, out: Outcome{ID: started.ID, Steps: map[string]string{}}}
	for _, s := range e.Signals {
		p.startAction(func() error { return p.sendSignal(ctx, s) })
	}
	err = p.followTask(ctx, look)
	p.wait.Wait()
	return &p.out, errors.Join(append(p.failed, err)...)
}

// startAction performs an action on the running task.
func (p *flowRun) startAction(do func() error) {
	p.wait.Go(func() {
		if err := do(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = append(p.failed, err)
		}
	})
}

func (p *flowRun) sendSignal(ctx context.Context, s Signal) error {
	select {
	case <-time.After(time.Duration(s.AfterMS) * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := p.server.Signal(ctx, p.out.ID, s.Key, s.Value)
	return err
}

func (p *flowRun) followTask(ctx context.Context, look func(*wire.Event)) error {
	for e, err := range p.server.Watch(ctx, p.out.ID, "") {
		if err != nil {
			return err
		}
		look(&e)
		p.handleEvent(ctx, &e)
	}
	task, err := p.server.Task(ctx, p.out.ID)
	if err != nil {
		return err
	}
	p.out.State, p.out.Error, p.out.Result = task.State, task.Error, task.Result
	p.out.Shared, err = json.Marshal(task.Shared)
	return err
}

// handleEvent records an event, and completes the units of a step that has begun.
func (p *flowRun) handleEvent(ctx context.Context, e *wire.Event) {
	switch e.Type {
	case "step_entered":
		if e.Scope == "~" {
			p.out.Closing = append(p.out.Closing, e.Node)
		}
		for _, c := range p.Complete {
			if c.Step == e.Node {
				unit := wire.CompleteRequest{StepName: wire.StepName{Step: c.Step, Scope: e.Scope}, Unit: c.Unit, Output: c.Output, Error: c.Error}
				p.startAction(func() error { _, err := p.server.Complete(ctx, p.out.ID, unit); return err })
			}
		}
	case "step_ended":
		p.out.Steps[e.Node] = e.State
	}
}

// Judge returns the difference from the expected result; "" if there is none.
func (e *Expectation) Judge(out *Outcome) string {
	switch {
	case out.State != e.State:
		return strings.TrimSuffix(fmt.Sprintf("ended %s, not %s: %s", out.State, e.State, out.Error), ": ")
	case !strings.Contains(out.Error, e.Error):
		return fmt.Sprintf("the error is %q, without %q", out.Error, e.Error)
	case !matchesExpected(out.Shared, e.Shared):
		return fmt.Sprintf("shared is %s, not %s", out.Shared, e.Shared)
	case !matchesExpected(out.Result, e.Result):
		return fmt.Sprintf("the result is %s, not %s", out.Result, e.Result)
	case e.Closing != nil && !slices.Equal(out.Closing, e.Closing):
		return fmt.Sprintf("what ran at the end is %v, not %v", out.Closing, e.Closing)
	}
	for slug, state := range e.Steps {
		if got := out.Steps[slug]; got != state {
			return fmt.Sprintf("step %s ended %q, not %q", slug, got, state)
		}
	}
	return ""
}

// matchesExpected reports whether a value equals the expected one, if there is one.
func matchesExpected(got, want json.RawMessage) bool {
	if want == nil {
		return true
	}
	var g, w any
	return json.Unmarshal(got, &g) == nil && json.Unmarshal(want, &w) == nil && reflect.DeepEqual(g, w)
}
