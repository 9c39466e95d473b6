package flow_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// readable returns states with active steps of every kind. Each call of a function rebuilds its
// state from the journal, or from a snapshot.
func readable(t *testing.T) map[string]func() *flow.State {
	states := map[string]func() *flow.State{}
	for name, tc := range map[string]struct{ definition, params string }{
		"a parallel": {`{"start":"a","nodes":{"a":{"kind":"parallel","parallel_services":["x","y"],"exec_type":"queue"}}}`,
			`{}`},
		"a parallel's list": {`{"start":"a","nodes":{"a":{"kind":"parallel","exec_type":"queue","params":{"services":"$params.services"}}}}`,
			`{"services":["x","y"]}`},
		"a foreach": {`{"start":"a","nodes":{"a":{"kind":"foreach","service":"x","exec_type":"queue","prep":{"input_key":"$params.list"}}}}`,
			`{"list":[1,2,3]}`},
		"a subflow": {`{"start":"a","nodes":{"a":{"kind":"subflow","subflow":{"start":"b","nodes":{"b":{"service":"x","exec_type":"queue"}}}}}}`,
			`{}`},
		"a signal": {`{"start":"a","nodes":{"a":{"kind":"wait_event","params":{"signal_key":"$shared.go"}}}}`,
			`{}`},
		"a map": {`{"mode":"dag","nodes":{"a":{"kind":"map","service":"x","route":"queue"}}}`, `[1,2,3]`},
		"a branch": {`{"mode":"dag","nodes":{"a":{"kind":"branch","flow":{"start":"b","nodes":{"b":{"service":"x","exec_type":"queue"}}}}}}`,
			`{}`},
		"a fan-out": {`{"mode":"dag","nodes":{"p":{"service":"list"},"a":{"depends_on":["p"],"each":{"items":"$deps.p","count":2},"service":"x","route":"queue"}}}`,
			`{}`},
		"as many as": {`{"mode":"dag","nodes":{"p":{"service":"list"},"a":{"depends_on":["p"],"each":{"count":3},"service":"x","route":"queue"}}}`,
			`{}`},
		"a finally": {`{"start":"b","finally":"a","nodes":{"b":{"service":"boom"},"a":{"service":"x","exec_type":"queue","prep":{"input_map":{"status":"$input.status"}}}}}`,
			`{}`},
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
		states[name] = func() *flow.State {
			s := flow.NewState(tb.state.Task, tb.state.Plan)
			require.NoError(t, flow.Fold(s, tb.rows...))
			return s
		}
		states[name+", reloaded"] = func() *flow.State { return tb.twin(flow.EncodeSnapshot(tb.state).Bytes()) }
	}
	return states
}

// readers lists the methods and functions that only read a state, by name.
var readers = map[string]func(s *flow.State){
	"State.ReplayedCall": func(s *flow.State) { s.ReplayedCall() },
	"State.Scope": func(s *flow.State) {
		eachScope(s, func(sc *flow.Scope) { s.Scope(sc.Path) })
	},
	"State.BegunApart": func(s *flow.State) { s.BegunApart() },
	"State.HasBegun": func(s *flow.State) {
		eachScope(s, func(sc *flow.Scope) { s.HasBegun(sc.Path) })
	},
	"State.Waits":     func(s *flow.State) { s.Waits() },
	"State.Approvals": func(s *flow.State) { s.Approvals() },
	"State.Question": func(s *flow.State) {
		for _, a := range s.Approvals() {
			s.Question(a.Address)
		}
	},
	"State.Active": func(s *flow.State) { s.Active() },
	"State.Holds": func(s *flow.State) {
		eachAttempt(s, func(a flow.Address) { s.Holds(a, "t1") })
	},
	"State.Answered": func(s *flow.State) { s.Answered("r1") },
	"State.Awaits":   func(s *flow.State) { s.Awaits(flow.Alarm{Kind: flow.AlarmTask}) },
	"State.Paused":   func(s *flow.State) { s.Paused() },
	"State.Lost":     func(s *flow.State) { _ = s.Lost() },
	"State.Result":   func(s *flow.State) { s.Result() },
	"State.Job": func(s *flow.State) {
		eachAttempt(s, func(a flow.Address) { s.Job(a) })
	},
	"State.Live": func(s *flow.State) {
		eachAttempt(s, func(a flow.Address) { s.Live(a) })
	},
	"State.NodeView": func(s *flow.State) {
		for i := range s.Root.Nodes {
			s.NodeView(i)
		}
	},
	"State.Digest": func(s *flow.State) {
		eachScope(s, func(sc *flow.Scope) { s.Digest(sc, sc.Plan.Order()) })
	},
	"State.ClosingScope": func(s *flow.State) { s.ClosingScope() },
	"State.StepCounts":   func(s *flow.State) { s.StepCounts() },
	"State.AllActive":    func(s *flow.State) { s.AllActive(10) },

	"Scope.Active":     func(s *flow.State) { eachScope(s, func(sc *flow.Scope) { sc.Active() }) },
	"Scope.Output":     func(s *flow.State) { eachScope(s, func(sc *flow.Scope) { sc.Output() }) },
	"Scope.SharedJSON": func(s *flow.State) { eachScope(s, func(sc *flow.Scope) { sc.SharedJSON() }) },
	"Scope.Entered":    func(s *flow.State) { eachScope(s, func(sc *flow.Scope) { sc.Entered("a") }) },
	"Scope.Has":        func(s *flow.State) { eachScope(s, func(sc *flow.Scope) { sc.Has("a") }) },

	"Step.Address":    func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.Address() }) },
	"Step.Scope":      func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.Scope() }) },
	"Step.Left":       func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.Left() }) },
	"Step.AwaitedKey": func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.AwaitedKey() }) },
	"Step.Placed":     func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.Placed(nil) }) },
	"Step.UnitName":   func(s *flow.State) { eachStep(s, func(st *flow.Step) { st.UnitName(0) }) },

	"Waiting":         func(s *flow.State) { flow.Waiting(s) },
	"Idle":            func(s *flow.State) { flow.Idle(s) },
	"Parked":          func(s *flow.State) { flow.Parked(s) },
	"Outstanding":     func(s *flow.State) { flow.Outstanding(s) },
	"State.CodeStops": func(s *flow.State) { eachAttempt(s, func(a flow.Address) { s.CodeStops(a) }) },
	"OutstandingTo":   func(s *flow.State) { flow.OutstandingTo(s, "m1") },
	"OutstandingOf":   func(s *flow.State) { eachStep(s, func(st *flow.Step) { flow.OutstandingOf(s, st.Address(), "m") }) },
	"EncodeSnapshot":  func(s *flow.State) { flow.EncodeSnapshot(s).Bytes() },
	"NodePage": func(s *flow.State) {
		flow.NodePage(s, s.Root, flow.StepQuery{Most: 10, Bytes: 1 << 20})
	},
	"UnitList": func(s *flow.State) {
		eachStep(s, func(st *flow.Step) {
			l := flow.NewUnitList(st.Address())
			l.From(s)
			for i := range l.Len() {
				l.At(i)
			}
		})
	},
}

func read(s *flow.State) {
	for _, by := range readers {
		by(s)
	}
}

func eachScope(s *flow.State, f func(*flow.Scope)) {
	f(s.Root)
	if s.Closing != nil {
		f(s.Closing.Scope)
	}
	eachStep(s, func(st *flow.Step) {
		if st.Child != nil {
			f(st.Child)
		}
	})
}

func eachStep(s *flow.State, f func(*flow.Step)) {
	for below := s.Active(); len(below) > 0; below = below[1:] {
		f(below[0])
		if below[0].Child != nil {
			below = append(below, below[0].Child.Active()...)
		}
	}
}

func eachAttempt(s *flow.State, f func(flow.Address)) {
	eachStep(s, func(st *flow.Step) {
		for i := range st.Units {
			a := st.Address()
			a.Unit, a.Attempt = i, int(st.Units[i].Attempt)
			f(a)
		}
	})
}

// onlyTests lists methods that the package has for its tests.
var onlyTests = []string{"State.Canceling", "Scope.Node", "Scope.Passes", "Scope.NodesLeft", "Step.ExecOf"}

func TestEveryReaderOfAStateIsKnown(t *testing.T) {
	for _, of := range []any{&flow.State{}, &flow.Scope{}, &flow.Step{}} {
		typ := reflect.TypeOf(of)
		for i := range typ.NumMethod() {
			name := typ.Elem().Name() + "." + typ.Method(i).Name
			require.True(t, readers[name] != nil || slices.Contains(onlyTests, name), "%s: does it change nothing? Add it to readers", name)
		}
	}
}

func TestReadingAStateChangesNothing(t *testing.T) {
	for name, fold := range readable(t) {
		t.Run(name, func(t *testing.T) {
			untouched, s := fold(), fold()
			require.NotEmpty(t, s.Active())
			require.True(t, reflect.DeepEqual(untouched, s), "the same state twice is the same state")
			for name, by := range readers {
				by(s)
				require.True(t, reflect.DeepEqual(untouched, s), "%s changes the state", name)
			}
		})
	}
}

// TestManyMayReadAStateAtOnce relies on the race detector.
func TestManyMayReadAStateAtOnce(t *testing.T) {
	for _, fold := range readable(t) {
		s := fold()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { read(s) })
		}
		all.Wait()
	}
}

func TestAClosingStepHasTheSameInputAfterAReload(t *testing.T) {
	for name, fold := range readable(t) {
		s := fold()
		if s.Closing == nil {
			continue
		}
		for _, st := range s.Active() {
			require.JSONEq(t, `{"status":"failed"}`, string(st.Input), name)
		}
	}
}
