// Package pocketflow converts rows of PocketFlow's scheduler, a task and its node runs, to events
// of Troupe. A task that has not ended continues from there.
//
// Promises: equal rows give equal events. The state of the events has the status, the shared values
// and the node of the task's row, whatever the runs contain. A run is converted completely or not
// at all; omitted runs are listed with the reason.
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

// Task is the row of a task. Times are Unix seconds, as in that database.
type Task struct {
	ID, Status           string
	Params, Shared       string // JSON
	Node                 string // current node; "" if there is none
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

// History is a task as events.
type History struct {
	Params  []byte
	Events  []flow.Event
	State   *flow.State // the state of the events
	Missing []string    // omitted parts of the rows, with reasons
	Untold  int         // number of omitted runs
}

// Tell returns the history of a task. The runs must be in the order in which they were stored.
func Tell(version string, plan *flow.Plan, t Task, runs []Run) (*History, error) {
	h, err := buildHistory(version, plan, t, runs, nil)
	if u := (*runsError)(nil); errors.As(err, &u) {
		lost := fmt.Sprintf("its %d runs: %s", len(runs), u.reason)
		if h, err = buildHistory(version, plan, t, nil, nil); h != nil {
			h.Missing, h.Untold = append([]string{lost}, h.Missing...), len(runs)
		}
	}
	return h, err
}

// runsError is the reason why some runs cannot be converted.
type runsError struct{ reason string }

func (u *runsError) Error() string { return u.reason }

func runsErrorf(format string, args ...any) error { return &runsError{fmt.Sprintf(format, args...)} }

// historyBuilder converts one task.
type historyBuilder struct {
	task        *Task
	plan        *flow.Plan
	history     *History
	rowShared   map[string]json.RawMessage // shared values of the row
	engineNotes map[string]json.RawMessage // the scheduler's own entries in shared
	// changes of shared that must happen before the last step ends
	finalChanges map[string]json.RawMessage
	lastEventAt  int64
}

func buildHistory(version string, plan *flow.Plan, t Task, runs []Run, amends map[string]json.RawMessage) (*History, error) {
	b := &historyBuilder{task: &t, plan: plan, history: &History{State: flow.NewState(t.ID, plan)}, finalChanges: amends}
	b.readShared()
	b.emitCreated(version)
	if err := b.emitVisits(runs); err != nil {
		return nil, err
	}
	if changes := b.sharedChanges(); amends == nil && len(changes) > 0 && len(runs) > 0 {
		return buildHistory(version, plan, t, runs, changes)
	}
	b.emitSharedChanges(b.sharedChanges())
	for _, key := range slices.Sorted(maps.Keys(b.history.State.Root.Shared)) {
		if _, there := b.rowShared[key]; !there {
			b.noteMissing("the absence of %q in shared, which a run has set: it is null", key)
		}
	}
	if err := b.finishTask(runs); err != nil {
		return nil, err
	}
	return b.history, nil
}

func (b *historyBuilder) noteMissing(format string, args ...any) {
	b.history.Missing = append(b.history.Missing, fmt.Sprintf(format, args...))
}

// emitEvent adds an event, at a time that is not before the previous one.
func (b *historyBuilder) emitEvent(e flow.Event, atMS int64) {
	b.lastEventAt = max(b.lastEventAt, atMS, 1)
	e.At = b.lastEventAt
	flow.Evolve(b.history.State, &e)
	b.history.Events = append(b.history.Events, e)
}

func (b *historyBuilder) emitCreated(version string) {
	params := []byte("{}")
	if parseObject(b.task.Params) != nil {
		params = []byte(b.task.Params)
	} else if b.task.Params != "" {
		b.noteMissing("its params, which are no JSON object and meant {}")
	}
	b.history.Params = params
	b.emitEvent(flow.Event{Type: flow.TaskCreated, Version: version, Params: params}, toMillis(b.task.CreatedAt))
}

// readShared separates the scheduler's own entries from shared.
func (b *historyBuilder) readShared() {
	b.rowShared = parseObject(b.task.Shared)
	if b.rowShared == nil && b.task.Shared != "" {
		b.noteMissing("its shared state, which is no JSON object")
	}
	b.engineNotes = parseObject(string(b.rowShared["_rt"]))
	delete(b.rowShared, "_rt")
}

// sharedChanges returns the values of shared in the row that differ from the state.
func (b *historyBuilder) sharedChanges() map[string]json.RawMessage {
	changes := map[string]json.RawMessage{}
	now := b.history.State.Root.Shared
	for key, v := range b.rowShared {
		if is, there := now[key]; !there || !equalValues(is, v) {
			changes[key] = v
		}
	}
	for key, v := range now {
		if _, there := b.rowShared[key]; !there && !equalValues(v, null) {
			changes[key] = null
		}
	}
	return changes
}

// emitSharedChanges sets shared to the values of the row: a signal has set them, or their origin is
// unknown.
func (b *historyBuilder) emitSharedChanges(changes map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		b.emitEvent(flow.Event{Type: flow.SignalReceived, Key: key, Output: changes[key]}, b.lastEventAt)
	}
}

// finishTask ends the task, or moves it to its current node.
func (b *historyBuilder) finishTask(runs []Run) error {
	t, s := b.task, b.history.State
	switch t.Status {
	case "completed", "failed":
		b.emitEvent(flow.Event{Type: flow.TaskEnded, Status: t.Status, Error: failureText(t, runs)}, toMillis(t.UpdatedAt))
	case "canceled", "canceling": // a cancellation in progress counts as done
		b.emitEvent(flow.Event{Type: flow.TaskEnded, Status: string(flow.TaskCanceled)}, toMillis(t.UpdatedAt))
	case "pending", "running", "waiting_queue":
		if err := b.moveToNode(t.Node, len(runs) > 0); err != nil {
			return err
		}
		b.resumeWait()
	default:
		return fmt.Errorf("its status %q is none", t.Status)
	}
	if ended := t.Status != "pending" && t.Status != "running" && t.Status != "waiting_queue"; ended != s.Status.Ended() {
		return fmt.Errorf("its status %q does not come of its history", t.Status)
	}
	return nil
}

// failureText returns why a task failed; the row does not contain it.
func failureText(t *Task, runs []Run) string {
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

// moveToNode moves an unfinished task to a node. Without runs, its path to that node is unknown.
func (b *historyBuilder) moveToNode(node string, told bool) error {
	root := b.history.State.Root
	switch {
	case root.Cursor == node:
		return nil
	case b.plan.Root.Nodes[node] == nil:
		return fmt.Errorf("it is at the node %q, which its version does not have", node)
	case told:
		return runsErrorf("they lead to the node %q, and the task is at %q", root.Cursor, node)
	}
	start := b.enterStep(root.Cursor, nil, 0, b.lastEventAt)
	start.Type, start.Status, start.Next, start.Action = flow.StepEnded, string(flow.StepCompleted), node, b.task.Action
	b.emitEvent(start, b.lastEventAt)
	return nil
}

// resumeWait makes a timer, or a wait with a timeout, count from its original start.
func (b *historyBuilder) resumeWait() {
	node := b.plan.Root.Nodes[b.task.Node]
	prefix := map[flow.Kind]string{flow.KindTimer: "tm:", flow.KindWaitEvent: "we:"}[node.Kind]
	noted := parseObject(string(b.engineNotes[prefix+node.Key]))
	since, ok := expr.Number(noted["start"])
	if prefix == "" || !ok || since <= 0 {
		return
	}
	// If the start has further consequences, the member that owns the task decides about them.
	then := flow.NewState(b.task.ID, b.plan)
	for i := range b.history.Events {
		flow.Evolve(then, &b.history.Events[i])
	}
	now := max(b.lastEventAt, int64(since))
	if d, err := flow.Decide(then, flow.Proceed{}, flow.Env{Now: now}); err == nil && len(d.Events) == 1 {
		b.emitEvent(d.Events[0], now)
	}
}

var null = json.RawMessage("null")

func toMillis(seconds int64) int64 { return seconds * 1000 }

// parseObject parses a JSON object. It returns nil if the text is not a JSON object.
func parseObject(text string) (fields map[string]json.RawMessage) {
	if json.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	return fields
}

// parseValue returns a JSON value. It returns nil for null, and a JSON string for text that is not
// JSON.
func parseValue(text string) json.RawMessage {
	switch raw := bytes.TrimSpace([]byte(text)); {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case json.Valid(raw):
		return raw
	}
	return expr.AppendQuote(nil, text)
}

// equalValues reports whether two values are equal in any spelling.
func equalValues(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(raw json.RawMessage) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		_ = d.Decode(&v) // both are valid JSON
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}
