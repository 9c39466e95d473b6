package flow_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestPromisesHoldForAnyFlow runs random commands on random flows.
func TestPromisesHoldForAnyFlow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { promisesHold(rt, flowtest.Rapid{T: rt}) })
}

// FuzzDecide finds flows and commands by coverage that random choice does not reach.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(32) {
		bytes := make([]byte, 1<<10)
		rand.NewChaCha8([32]byte{byte(seed)}).Read(bytes)
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { promisesHold(t, &flowtest.Bytes{Left: bytes}) })
}

// promisesHold runs one random history. The table checks the promises after each command; in the
// end nothing may be stuck.
func promisesHold(t require.TestingT, d flowtest.Dice) {
	tb := newTable(t, flowtest.Plan(t, flowtest.RandomDefinition(d)))
	tb.env.Limits = flow.Limits{Steps: 60, Events: 20, Value: 1_000, Shared: 3_000, Levels: 6, Deliveries: 3, Depth: 2, Units: 6}
	_, err := tb.ask("r0", flow.Start{Version: "v", Params: paramsFor(tb.state.Plan)})
	require.NoError(t, err)
	for i := range flowtest.Between(d, "commands", 0, 30) {
		tb.happen(d, i)
	}
	tb.crash("last", 0)
	require.True(t, tb.drain(), "the task is stuck: %s\nthe last events: %s", stateText(tb.state), tb.rows[max(0, len(tb.rows)-5):])
	if tb.state.Status == flow.TaskFailed && flowtest.Chance(d, 60) {
		tb.ask("", flow.RetryTask{})
		tb.happen(d, 100)
		tb.crash("after all", 0)
		require.True(t, tb.drain(), "the retried task is stuck: %s\nthe last events: %s",
			stateText(tb.state), tb.rows[max(0, len(tb.rows)-5):])
	}
	require.NoError(t, orderedEvents(tb.events))
	tb.wait(10_000)
	tb.runs()
}

// TestEventsSurviveTheJournal compares the encoder written by hand with encoding/json.
func TestEventsSurviveTheJournal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(randomEvent), 0, 4).Draw(rt, "events")
		row := flow.AppendEvents(nil, events)
		got, err := flow.DecodeEvents(row)
		require.NoError(rt, err)
		require.Equal(rt, len(events), len(got))
		for i := range events {
			require.Equal(rt, events[i], got[i])
		}
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		require.NoError(rt, enc.Encode(map[string]any{"f": 1, "e": append([]flow.Event{}, events...)}))
		want, err := flow.DecodeEvents(plain.Bytes())
		require.NoError(rt, err)
		_, quick := flow.DecodeRow(nil, row)
		require.True(rt, quick, "what we write is read by hand")
		got, err = flow.DecodeEvents([]byte(compact(rt, row))) // in the form of encoding/json
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

// randomEvent fills all fields through reflection, so that no new field is missed.
func randomEvent(rt *rapid.T) flow.Event {
	e := rapid.Make[flow.Event]().Draw(rt, "event")
	for _, v := range []*json.RawMessage{&e.Input, &e.Output, &e.Details, &e.Metrics, &e.Params, &e.Permits} {
		*v = json.RawMessage(flowtest.OneOf(flowtest.Rapid{T: rt}, "value", "", `1`, `null`,
			`"<&> h\u00e9"`, `{"big": 12345678901234567890 }`))
		if len(*v) == 0 {
			*v = nil
		}
	}
	e.At = int64(flowtest.Between(flowtest.Rapid{T: rt}, "at", 1, 3))
	e.Type = flow.EventType(flowtest.OneOf(flowtest.Rapid{T: rt}, "type", flow.TaskCreated, flow.StepEnded, flow.AttemptEnded))
	return e
}

func TestUnreadableRowsAreErrors(t *testing.T) {
	for row, want := range map[string]string{
		``:                   "cannot be read",
		`{"f":1,"e":{}}`:     "cannot be read",
		`{"f":2,"e":[]}`:     "newer Troupe",
		`{"e":[{"e":"x"}]}`:  "newer Troupe",
		`{"f":1,"e":["bad"]`: "cannot be read",
	} {
		_, err := flow.DecodeEvents([]byte(row))
		require.ErrorContains(t, err, want)
		require.Error(t, flow.Fold(flow.NewState("t", nil), []byte(row)))
	}
}

func TestUnusableSnapshotsAreRejected(t *testing.T) {
	plan := flowtest.Plan(t, "start: a\nnodes: {a: {service: s}}")
	s := flow.NewState("task-1", plan)
	_, err := flow.Decide(s, flow.Start{}, flow.Env{Now: epoch})
	require.NoError(t, err)
	good := flow.EncodeSnapshot(s).Bytes()
	_, ok := flow.DecodeSnapshot(good, plan)
	require.True(t, ok)

	other := flowtest.Plan(t, "start: b\nnodes: {b: {service: s}}")
	_, ok = flow.DecodeSnapshot(good, other)
	require.False(t, ok, "its node is not in the plan")
	var dags []*flow.State
	for _, nodes := range []string{"{a: {service: s}}", "{a: {service: s}, b: {service: s}}"} {
		dags = append(dags, flow.NewState("task-1", flowtest.Plan(t, "mode: dag\nnodes: "+nodes)))
		_, err := flow.Decide(dags[len(dags)-1], flow.Start{}, flow.Env{Now: epoch})
		require.NoError(t, err)
	}
	for i, s := range dags {
		_, ok = flow.DecodeSnapshot(flow.EncodeSnapshot(s).Bytes(), dags[1-i].Plan)
		require.False(t, ok, "it has another number of nodes than the plan")
	}
	another := append([]byte{flow.SnapshotFormat + 1}, good[1:]...)
	for _, broken := range [][]byte{nil, another, append(good[:len(good):len(good)], 0),
		[]byte(`{"Format":1,"State":{}}`), {flow.SnapshotFormat}} {
		_, ok := flow.DecodeSnapshot(broken, plan)
		require.False(t, ok, "the caller folds the journal instead: %q", broken)
	}
	for cut := range len(good) {
		_, ok := flow.DecodeSnapshot(good[:cut], plan)
		require.False(t, ok)
	}
}

// TestEventsThatDoNotFitAreNotApplied applies journals out of order, with gaps and repetitions.
// Nothing may panic, including the readers of the state.
func TestEventsThatDoNotFitAreNotApplied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := flowtest.Rapid{T: rt}
		tb := newTable(rt, flowtest.Plan(rt, flowtest.RandomDefinition(d)))
		tb.env.Limits = flow.Limits{Steps: 20, Depth: 2, Units: 6}
		_, err := tb.do(flow.Start{Params: paramsFor(tb.state.Plan)})
		require.NoError(rt, err)
		for i := range flowtest.Between(d, "commands", 0, 10) {
			tb.happen(d, i)
		}
		h := flow.NewHistory("task-1", tb.state.Plan)
		for range flowtest.Between(d, "events", 0, 40) {
			e := tb.events[d.Pick("event", len(tb.events))]
			h.Apply(&e)
			flow.Waiting(h.State)
			flow.Outstanding(h.State)
		}
	})
}
