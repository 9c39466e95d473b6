package flow

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPromisesHoldForAnyFlow drives random flows by random commands.
func TestPromisesHoldForAnyFlow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { promisesHold(rt, rapidDice{rt}) })
}

// FuzzDecide lets coverage find flows and commands that chance does not.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(32) {
		bytes := make([]byte, 1<<10)
		rand.NewChaCha8([32]byte{byte(seed)}).Read(bytes)
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { promisesHold(t, &byteDice{bytes}) })
}

// promisesHold plays one random history. The table holds the promises after each command; in the end
// nothing may be stuck.
func promisesHold(t require.TestingT, d dice) {
	tb := newTable(t, planOf(t, randomDefinition(d)))
	tb.env.Limits = Limits{Steps: 60, Events: 20, Value: 1_000, Shared: 3_000, Levels: 6, Deliveries: 3, Depth: 2, Units: 6}
	_, err := tb.ask("r0", Start{Version: "v", Params: paramsFor(tb.state.Plan)})
	require.NoError(t, err)
	for i := range between(d, "commands", 0, 30) {
		tb.happen(d, i)
	}
	tb.crash("last", 0)
	require.True(t, tb.drain(), "the task is stuck: %s\nthe last events: %s", stateText(t, tb.state), tb.rows[max(0, len(tb.rows)-5):])
	if tb.state.Status == TaskFailed && chance(d, 60) {
		tb.ask("", RetryTask{})
		tb.happen(d, 100)
		tb.crash("after all", 0)
		require.True(t, tb.drain(), "the retried task is stuck: %s\nthe last events: %s", stateText(t, tb.state), tb.rows[max(0, len(tb.rows)-5):])
	}
	require.NoError(t, orderedEvents(tb.events))
	tb.wait(10_000)
	tb.runs()
}

// TestEventsSurviveTheJournal holds the encoder written by hand against encoding/json.
func TestEventsSurviveTheJournal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(randomEvent), 0, 4).Draw(rt, "events")
		row := AppendEvents(nil, events)
		got, err := DecodeEvents(row)
		require.NoError(rt, err)
		require.Equal(rt, len(events), len(got))
		for i := range events {
			require.Equal(rt, events[i], got[i])
		}
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		require.NoError(rt, enc.Encode(map[string]any{"f": 1, "e": append([]Event{}, events...)}))
		want, err := DecodeEvents(plain.Bytes())
		require.NoError(rt, err)
		_, quick := decodeRow(nil, row)
		require.True(rt, quick, "what we write is read by hand")
		got, err = DecodeEvents([]byte(compact(rt, row))) // as encoding/json writes values
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

// randomEvent fills every field it can, as reflection sees them, so that a new one is not forgotten.
func randomEvent(rt *rapid.T) Event {
	e := rapid.Make[Event]().Draw(rt, "event")
	for _, v := range []*json.RawMessage{&e.Input, &e.Output, &e.Params} {
		*v = json.RawMessage(oneOf(rapidDice{rt}, "value", "", `1`, `null`, `"<&> h\u00e9"`, `{"big": 12345678901234567890 }`))
		if len(*v) == 0 {
			*v = nil
		}
	}
	e.At = int64(between(rapidDice{rt}, "at", 1, 3))
	e.Type = EventType(oneOf(rapidDice{rt}, "type", TaskCreated, StepEnded, AttemptEnded))
	return e
}

func TestRowsThatCannotBeReadAreTold(t *testing.T) {
	for row, want := range map[string]string{
		``:                   "cannot be read",
		`{"f":1,"e":{}}`:     "cannot be read",
		`{"f":2,"e":[]}`:     "newer Troupe",
		`{"e":[{"e":"x"}]}`:  "newer Troupe",
		`{"f":1,"e":["bad"]`: "cannot be read",
	} {
		_, err := DecodeEvents([]byte(row))
		require.ErrorContains(t, err, want)
		require.Error(t, Fold(NewState("t", nil), []byte(row)))
	}
}

func TestSnapshotsThatCannotBeUsedAreOfNoUse(t *testing.T) {
	plan := planOf(t, "start: a\nnodes: {a: {service: s}}")
	s := NewState("task-1", plan)
	_, err := Decide(s, Start{}, Env{Now: epoch})
	require.NoError(t, err)
	good := EncodeSnapshot(s)
	_, ok := DecodeSnapshot(good, plan)
	require.True(t, ok)

	other := planOf(t, "start: b\nnodes: {b: {service: s}}")
	_, ok = DecodeSnapshot(good, other)
	require.False(t, ok, "its node is not in the plan")
	var dags []*State
	for _, nodes := range []string{"{a: {service: s}}", "{a: {service: s}, b: {service: s}}"} {
		dags = append(dags, NewState("task-1", planOf(t, "mode: dag\nnodes: "+nodes)))
		_, err := Decide(dags[len(dags)-1], Start{}, Env{Now: epoch})
		require.NoError(t, err)
	}
	for i, s := range dags {
		_, ok = DecodeSnapshot(EncodeSnapshot(s), dags[1-i].Plan)
		require.False(t, ok, "it has another number of nodes than the plan")
	}
	another := append([]byte{snapshotFormat + 1}, good[1:]...)
	for _, broken := range [][]byte{nil, another, append(good[:len(good):len(good)], 0), []byte(`{"Format":1,"State":{}}`), {snapshotFormat}} {
		_, ok := DecodeSnapshot(broken, plan)
		require.False(t, ok, "the caller folds the journal instead: %q", broken)
	}
	for cut := range len(good) {
		_, ok := DecodeSnapshot(good[:cut], plan)
		require.False(t, ok)
	}
}

// TestEventsThatDoNotFitAreNotApplied folds journals out of order, with gaps and repeats: nothing panics,
// also not in what reads the state.
func TestEventsThatDoNotFitAreNotApplied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDice{rt}
		tb := newTable(rt, planOf(rt, randomDefinition(d)))
		tb.env.Limits = Limits{Steps: 20, Depth: 2, Units: 6}
		_, err := tb.do(Start{Params: paramsFor(tb.state.Plan)})
		require.NoError(rt, err)
		for i := range between(d, "commands", 0, 10) {
			tb.happen(d, i)
		}
		h := NewHistory("task-1", tb.state.Plan)
		for range between(d, "events", 0, 40) {
			e := tb.events[d.pick("event", len(tb.events))]
			h.Apply(&e)
			Waiting(h.State)
			Outstanding(h.State)
		}
	})
}
