// Package pocketflow tells in events what PocketFlow's scheduler has stored of a task: its row, and those of its node runs. A task that
// has not ended goes on from there.
//
// What it promises: equal rows give equal events; the state that they fold to has the status, the shared values and the node that the row
// tells, whatever the runs say; a run is told as it was or not at all, and what is not told is listed with the reason.
package pocketflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Task is the row of a task. Times are Unix seconds, as there.
type Task struct {
	ID, Status           string
	Params, Shared       string // JSON
	Node                 string // that it is at; "" = none
	Action               string
	CreatedAt, UpdatedAt int64
}

// Run is the row of a node run.
type Run struct {
	Node                  string
	Attempt               int
	Status, Sub, Branch   string
	Input, Output         string // JSON
	Error, Action         string
	StartedAt, FinishedAt int64
	Worker, URL           string
}

// History is a task in events.
type History struct {
	Params  []byte
	Events  []flow.Event
	State   *flow.State // that the events fold to
	Missing []string    // what of the rows is not told, and why
	Untold  int         // how many runs are among that
}

// Tell tells the history of a task. The runs are in the order in which they were stored.
func Tell(version string, plan *flow.Plan, t Task, runs []Run) (*History, error) {
	h, err := tell(version, plan, t, runs, nil)
	if u := (*untold)(nil); errors.As(err, &u) {
		lost := fmt.Sprintf("its %d runs: %s", len(runs), u.why)
		if h, err = tell(version, plan, t, nil, nil); h != nil {
			h.Missing, h.Untold = append([]string{lost}, h.Missing...), len(runs)
		}
	}
	return h, err
}

// untold is why runs cannot be told.
type untold struct{ why string }

func (u *untold) Error() string { return u.why }

func untoldf(format string, args ...any) error { return &untold{fmt.Sprintf(format, args...)} }

// teller tells one task.
type teller struct {
	task   *Task
	plan   *flow.Plan
	said   *History
	shared map[string]json.RawMessage // as the row has it
	engine map[string]json.RawMessage // what the scheduler has noted there for itself
	amends map[string]json.RawMessage // of shared, told before the last step ends
	at     int64
}

func tell(version string, plan *flow.Plan, t Task, runs []Run, amends map[string]json.RawMessage) (*History, error) {
	b := &teller{task: &t, plan: plan, said: &History{State: flow.NewState(t.ID, plan)}, amends: amends}
	b.readShared()
	b.create(version)
	if err := b.steps(runs); err != nil {
		return nil, err
	}
	if changes := b.changes(); amends == nil && len(changes) > 0 && len(runs) > 0 {
		return tell(version, plan, t, runs, changes)
	}
	b.amend(b.changes())
	for _, key := range slices.Sorted(maps.Keys(b.said.State.Root.Shared)) {
		if _, there := b.shared[key]; !there {
			b.lacks("the absence of %q in shared, which a run has set: it is null", key)
		}
	}
	if err := b.finish(runs); err != nil {
		return nil, err
	}
	return b.said, nil
}

func (b *teller) lacks(format string, args ...any) {
	b.said.Missing = append(b.said.Missing, fmt.Sprintf(format, args...))
}

// emit makes an event happen, at a time that is not before that of the last one.
func (b *teller) emit(e flow.Event, atMS int64) {
	b.at = max(b.at, atMS, 1)
	e.At = b.at
	flow.Evolve(b.said.State, &e)
	b.said.Events = append(b.said.Events, e)
}

func (b *teller) create(version string) {
	params := []byte("{}")
	if object(b.task.Params) != nil {
		params = []byte(b.task.Params)
	} else if b.task.Params != "" {
		b.lacks("its params, which are no JSON object and meant {}")
	}
	b.said.Params = params
	b.emit(flow.Event{Type: flow.TaskCreated, Version: version, Params: params}, ms(b.task.CreatedAt))
}

// readShared keeps apart what the scheduler has noted in shared for itself.
func (b *teller) readShared() {
	b.shared = object(b.task.Shared)
	if b.shared == nil && b.task.Shared != "" {
		b.lacks("its shared state, which is no JSON object")
	}
	b.engine = object(string(b.shared["_rt"]))
	delete(b.shared, "_rt")
}

// changes are the values that shared has in the row and not in the state.
func (b *teller) changes() map[string]json.RawMessage {
	changes := map[string]json.RawMessage{}
	now := b.said.State.Root.Shared
	for key, v := range b.shared {
		if is, there := now[key]; !there || !same(is, v) {
			changes[key] = v
		}
	}
	for key, v := range now {
		if _, there := b.shared[key]; !there && !same(v, null) {
			changes[key] = null
		}
	}
	return changes
}

// amend has shared be what the row says: a signal has set it, or nobody knows who.
func (b *teller) amend(changes map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		b.emit(flow.Event{Type: flow.SignalReceived, Key: key, Output: changes[key]}, b.at)
	}
}

// finish ends the task, or has it be where it was.
func (b *teller) finish(runs []Run) error {
	t, s := b.task, b.said.State
	switch t.Status {
	case "completed", "failed":
		b.emit(flow.Event{Type: flow.TaskEnded, Status: t.Status, Error: failure(t, runs)}, ms(t.UpdatedAt))
	case "canceled", "canceling": // what was to be canceled there is
		b.emit(flow.Event{Type: flow.TaskEnded, Status: string(flow.TaskCanceled)}, ms(t.UpdatedAt))
	case "pending", "running", "waiting_queue":
		if err := b.moveTo(t.Node, len(runs) > 0); err != nil {
			return err
		}
		b.wait()
	default:
		return fmt.Errorf("its status %q is none", t.Status)
	}
	if ended := t.Status != "pending" && t.Status != "running" && t.Status != "waiting_queue"; ended != s.Status.Ended() {
		return fmt.Errorf("its status %q does not come of its history", t.Status)
	}
	return nil
}

// failure is why a task failed: its row does not say.
func failure(t *Task, runs []Run) string {
	if t.Status != "failed" {
		return ""
	}
	for _, r := range slices.Backward(runs) {
		if r.Error != "" {
			return r.Error
		}
	}
	return "failed"
}

// moveTo has an unfinished task be at a node. Without runs nobody knows how it came there.
func (b *teller) moveTo(node string, told bool) error {
	root := b.said.State.Root
	switch {
	case root.Cursor == node:
		return nil
	case b.plan.Root.Nodes[node] == nil:
		return fmt.Errorf("it is at the node %q, which its version does not have", node)
	case told:
		return untoldf("they lead to the node %q, and the task is at %q", root.Cursor, node)
	}
	start := b.enter(root.Cursor, nil, 0, b.at)
	start.Type, start.Status, start.Next, start.Action = flow.StepEnded, string(flow.StepCompleted), node, b.task.Action
	b.emit(start, b.at)
	return nil
}

// wait has a timer, or a wait with a timeout, go on counting from when it began.
func (b *teller) wait() {
	node := b.plan.Root.Nodes[b.task.Node]
	prefix := map[flow.Kind]string{flow.KindTimer: "tm:", flow.KindWaitEvent: "we:"}[node.Kind]
	noted := object(string(b.engine[prefix+node.Key]))
	since, ok := expr.Number(noted["start"])
	if prefix == "" || !ok || since <= 0 {
		return
	}
	// What follows of more than that it began is decided by the member that owns the task.
	then := flow.NewState(b.task.ID, b.plan)
	for i := range b.said.Events {
		flow.Evolve(then, &b.said.Events[i])
	}
	now := max(b.at, int64(since))
	if d, err := flow.Decide(then, flow.Proceed{}, flow.Env{Now: now}); err == nil && len(d.Events) == 1 {
		b.emit(d.Events[0], now)
	}
}

var null = json.RawMessage("null")

func ms(seconds int64) int64 { return seconds * 1000 }

// object is nil for a text that is none in JSON.
func object(text string) (fields map[string]json.RawMessage) {
	if json.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	return fields
}

// value is nil for null, for what is no JSON a text.
func value(text string) json.RawMessage {
	switch raw := bytes.TrimSpace([]byte(text)); {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case json.Valid(raw):
		return raw
	}
	return expr.AppendQuote(nil, text)
}

// same compares values, whatever their form.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(raw json.RawMessage) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		_ = d.Decode(&v) // both come of valid JSON
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}
