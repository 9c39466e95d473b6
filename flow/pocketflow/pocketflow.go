// Package pocketflow tells in events what PocketFlow's scheduler has stored of a task: its row, and
// those of its node runs. A task that has not ended goes on from there.
//
// What it promises: equal rows give equal events; the state that they fold to has the status, the
// shared values and the node that the row tells, whatever the runs say; a run is told as it was or
// not at all, and what is not told is listed with the reason.
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
	h, err := buildHistory(version, plan, t, runs, nil)
	if u := (*runsError)(nil); errors.As(err, &u) {
		lost := fmt.Sprintf("its %d runs: %s", len(runs), u.reason)
		if h, err = buildHistory(version, plan, t, nil, nil); h != nil {
			h.Missing, h.Untold = append([]string{lost}, h.Missing...), len(runs)
		}
	}
	return h, err
}

// runsError is why runs cannot be told.
type runsError struct{ reason string }

func (u *runsError) Error() string { return u.reason }

func runsErrorf(format string, args ...any) error { return &runsError{fmt.Sprintf(format, args...)} }

// historyBuilder tells one task.
type historyBuilder struct {
	task         *Task
	plan         *flow.Plan
	history      *History
	rowShared    map[string]json.RawMessage // as the row has it
	engineNotes  map[string]json.RawMessage // what the scheduler has noted there for itself
	finalChanges map[string]json.RawMessage // of shared, told before the last step ends
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

// emitEvent makes an event happen, at a time that is not before that of the last one.
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

// readShared keeps apart what the scheduler has noted in shared for itself.
func (b *historyBuilder) readShared() {
	b.rowShared = parseObject(b.task.Shared)
	if b.rowShared == nil && b.task.Shared != "" {
		b.noteMissing("its shared state, which is no JSON object")
	}
	b.engineNotes = parseObject(string(b.rowShared["_rt"]))
	delete(b.rowShared, "_rt")
}

// sharedChanges are the values that shared has in the row and not in the state.
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

// emitSharedChanges has shared be what the row says: a signal has set it, or nobody knows who.
func (b *historyBuilder) emitSharedChanges(changes map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		b.emitEvent(flow.Event{Type: flow.SignalReceived, Key: key, Output: changes[key]}, b.lastEventAt)
	}
}

// finishTask ends the task, or has it be where it was.
func (b *historyBuilder) finishTask(runs []Run) error {
	t, s := b.task, b.history.State
	switch t.Status {
	case "completed", "failed":
		b.emitEvent(flow.Event{Type: flow.TaskEnded, Status: t.Status, Error: failureText(t, runs)}, toMillis(t.UpdatedAt))
	case "canceled", "canceling": // what was to be canceled there is
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

// failureText is why a task failed: its row does not say.
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

// moveToNode has an unfinished task be at a node. Without runs nobody knows how it came there.
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

// resumeWait has a timer, or a wait with a timeout, go on counting from when it began.
func (b *historyBuilder) resumeWait() {
	node := b.plan.Root.Nodes[b.task.Node]
	prefix := map[flow.Kind]string{flow.KindTimer: "tm:", flow.KindWaitEvent: "we:"}[node.Kind]
	noted := parseObject(string(b.engineNotes[prefix+node.Key]))
	since, ok := expr.Number(noted["start"])
	if prefix == "" || !ok || since <= 0 {
		return
	}
	// What follows of more than that it began is decided by the member that owns the task.
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

// parseObject is nil for a text that is none in JSON.
func parseObject(text string) (fields map[string]json.RawMessage) {
	if json.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	return fields
}

// parseValue is nil for null, for what is no JSON a text.
func parseValue(text string) json.RawMessage {
	switch raw := bytes.TrimSpace([]byte(text)); {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case json.Valid(raw):
		return raw
	}
	return expr.AppendQuote(nil, text)
}

// equalValues compares values, whatever their form.
func equalValues(a, b json.RawMessage) bool {
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
