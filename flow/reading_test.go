package flow_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/flowtest"
)

// readable are states with something of every kind under way, as they are and reloaded.
func readable(t *testing.T) map[string]*flow.State {
	states := map[string]*flow.State{}
	for name, tc := range map[string]struct{ definition, params string }{
		"a parallel":        {`{"start":"a","nodes":{"a":{"kind":"parallel","parallel_services":["x","y"],"exec_type":"queue"}}}`, `{}`},
		"a parallel's list": {`{"start":"a","nodes":{"a":{"kind":"parallel","exec_type":"queue"}}}`, `{"services":["x","y"]}`},
		"a foreach":         {`{"start":"a","nodes":{"a":{"kind":"foreach","service":"x","exec_type":"queue","prep":{"input_key":"$params.list"}}}}`, `{"list":[1,2,3]}`},
		"a map":             {`{"mode":"dag","nodes":{"a":{"kind":"map","service":"x","route":"queue"}}}`, `[1,2,3]`},
		"a fan-out":         {`{"mode":"dag","nodes":{"p":{"service":"list"},"a":{"depends_on":["p"],"each":{"items":"$deps.p","count":2},"service":"x","route":"queue"}}}`, `{}`},
		"as many as":        {`{"mode":"dag","nodes":{"p":{"service":"list"},"a":{"depends_on":["p"],"each":{"count":3},"service":"x","route":"queue"}}}`, `{}`},
		"a finally":         {`{"start":"b","finally":"a","nodes":{"b":{"service":"boom"},"a":{"service":"x","exec_type":"queue","prep":{"input_map":{"status":"$input.status"}}}}}`, `{}`},
	} {
		tb := newTable(t, flowtest.Plan(t, tc.definition))
		_, err := tb.do(flow.Start{Params: json.RawMessage(tc.params)})
		require.NoError(t, err)
		for _, a := range tb.open() {
			if s := tb.jobs[a].Exec.Service; s == "list" || s == "boom" {
				_, err = tb.do(carryOut(tb.jobs[a]))
				require.NoError(t, err)
			}
		}
		states[name] = tb.state
		states[name+", reloaded"] = tb.twin(flow.EncodeSnapshot(tb.state))
	}
	return states
}

// read does what people and members do with a state.
func read(s *flow.State) {
	for _, st := range s.Active() {
		at := st.Address()
		l := flow.NewUnitList(at)
		l.From(s)
		for i := range l.Len() {
			l.At(i)
		}
		flow.OutstandingOf(s, at, "m")
	}
	if s.Root.Plan.Dag != nil {
		for i := range s.Root.Nodes {
			s.NodeView(i)
		}
	}
	flow.Waiting(s)
	flow.Idle(s)
	flow.Outstanding(s)
	s.AllActive(10)
	s.Result()
	flow.EncodeSnapshot(s)
}

func TestReadingAStateChangesNothing(t *testing.T) {
	for name, s := range readable(t) {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, s.Active())
			before := slices.Clone(s.Active())
			copies := make([]flow.Step, len(before))
			for i, st := range before {
				copies[i] = *st
			}
			read(s)
			for i, st := range s.Active() {
				require.Equal(t, derivedOf(&copies[i]), derivedOf(st))
				require.Same(t, before[i], st)
			}
		})
	}
}

// TestManyMayReadAStateAtOnce is about what the race detector says.
func TestManyMayReadAStateAtOnce(t *testing.T) {
	for _, s := range readable(t) {
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() { read(s) })
		}
		readers.Wait()
	}
}

func TestWhatClosesHasTheSameInputAfterAReload(t *testing.T) {
	for name, s := range readable(t) {
		if s.Closing == nil {
			continue
		}
		for _, st := range s.Active() {
			require.JSONEq(t, `{"status":"failed"}`, string(st.Input), name)
		}
	}
}

// derivedOf is what a reader could be tempted to fill in.
func derivedOf(st *flow.Step) []any {
	items, whole, names, execs := st.Derived()
	return []any{items, whole, names, execs}
}
