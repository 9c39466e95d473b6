package flow_test

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// twin returns the state after a reload; nil before the first event.
func (tb *table) twin(snapshot []byte) *flow.State {
	if tb.state.Status == "" {
		return nil
	}
	s, ok := flow.DecodeSnapshot(snapshot, tb.state.Plan)
	require.True(tb.t, ok)
	return s
}

func (tb *table) sameDecision(twin *flow.State, c flow.Command, env flow.Env, d flow.Decision, err error) {
	d2, err2 := flow.Decide(twin, c, env)
	require.Equal(tb.t, err, err2)
	require.Equal(tb.t, compact(tb.t, flow.AppendEvents(nil, d.Events)),
		compact(tb.t, flow.AppendEvents(nil, d2.Events)), "a reloaded state decides %+v differently", c)
	require.Equal(tb.t, effectTexts(d.Effects), effectTexts(d2.Effects))
	require.Equal(tb.t, d.More, d2.More)
	sameState(tb.t, tb.state, twin)
}

func (tb *table) oncePerAttempt(e *flow.Event) {
	if e.Type == flow.TaskRetried {
		tb.over = 0
	}
	if e.Type == flow.AttemptEnded {
		require.False(tb.t, tb.ended[e.Address()], "attempt %s ended twice", e.Address())
		tb.ended[e.Address()] = true
	}
}

// checkDags recomputes the counters of dag scopes, and looks for nodes that could run but do not.
func (tb *table) checkDags(sc *flow.Scope) {
	s := tb.state
	if s.Status == "" || s.Status.Ended() {
		return
	}
	if c := s.Closing; c != nil && sc == s.Root {
		sc = c.Scope
	}
	for _, st := range sc.Active() {
		if st.Child != nil {
			tb.checkDags(st.Child)
		}
	}
	if sc.Plan.Dag == nil {
		return
	}
	left := 0
	for i, n := range sc.Plan.Dag.List {
		state := &sc.Nodes[i]
		waits, doomed := 0, false
		for _, dep := range n.Dag.Deps {
			switch {
			case !sc.Nodes[dep].Ended():
				waits++
			case !sc.Passes(dep, n):
				doomed = true
			}
		}
		if state.Ended() {
			continue
		}
		left++
		require.Equal(tb.t, doomed, state.Doomed, "%s in scope %q", n.Key, sc.Path)
		require.True(tb.t, waits == int(state.Waits) || doomed, "%s in scope %q waits for %d, not %d", n.Key, sc.Path, waits, state.Waits)
		require.False(tb.t, state.Status() == flow.StepStarted && waits > 0,
			"%s in scope %q has begun before what it waits for has ended", n.Key, sc.Path)
		require.True(tb.t, state.Status() == flow.StepStarted || waits > 0 && !doomed ||
			s.Paused() || state.Held || s.Permits.Waits() || s.Canceling() ||
			sc.EnterAt >= tb.env.Now, "%s in scope %q could run", n.Key, sc.Path)
	}
	require.Equal(tb.t, left, sc.NodesLeft())
	require.True(tb.t, left > 0 || s.Permits.Waits(), "scope %q is over and nobody has noticed", sc.Path)
}

// below reports whether a scope is inside a step.
func below(scope string, step flow.Address) bool {
	child := flow.PathOfChild(step.Scope, step.Node, step.Visit)
	return scope == child || strings.HasPrefix(scope, child+"/")
}

// checkOwed compares the collected effects with the outstanding ones.
func (tb *table) checkOwed() {
	if tb.state.Status.Ended() {
		canceled := tb.state.CancelAt != 0 && tb.state.CancelError == ""
		require.True(tb.t, !canceled || tb.state.Status == flow.TaskCanceled, "what is canceled is %s", tb.state.Status)
		require.Equal(tb.t, 1, tb.over, "a task ends once")
		require.Empty(tb.t, tb.jobs, "a task that has ended has jobs; the last events: %s", tb.rows[max(0, len(tb.rows)-4):])
		require.Empty(tb.t, flow.Outstanding(tb.state))
		require.Empty(tb.t, tb.asks, "a task that has ended asks for permits")
		require.Empty(tb.t, tb.held, "a task that has ended holds permits")
		return
	}
	jobs, carried, asks := map[flow.Address]bool{}, map[flow.Address]bool{}, 0
	outstanding := flow.Outstanding(tb.state)
	tb.checkReaders(outstanding)
	for _, e := range outstanding {
		switch e := e.(type) {
		case flow.Dispatch:
			require.Equal(tb.t, effectText(flow.Dispatch{tb.jobs[e.Job.Address]}), effectText(e), "an outstanding job was never dispatched")
			require.False(tb.t, tb.claimed[e.Job.Address], "a claimed job is outstanding")
			jobs[e.Job.Address] = true
		case flow.Reclaim:
			require.Contains(tb.t, tb.jobs, e.Job.Address, "an outstanding job was never dispatched")
			jobs[e.Job.Address] = true
		case flow.Alarm:
			if e.Kind == flow.AlarmClaim {
				require.True(tb.t, tb.claimed[e.Address])
				jobs[e.Address] = true
			}
			require.True(tb.t, slices.Contains(tb.alarms, e), "outstanding alarm %s was never set", effectText(e))
		case flow.Spawn:
			carried[e.Address] = true
		case flow.Ask:
			require.Contains(tb.t, tb.asks, e)
			asks++
		}
	}
	require.Equal(tb.t, len(tb.asks), asks, "somebody still asks for a permit: %v", tb.asks)
	require.Equal(tb.t, len(tb.jobs), len(jobs), "a dispatched job is forgotten")
	require.Equal(tb.t, tb.carried, carried, "what is carried apart from the task; the last events: %s", tb.rows[max(0, len(tb.rows)-4):])
}

// checkReaders compares the results of readers of a state with the outstanding effects.
func (tb *table) checkReaders(outstanding []flow.Effect) {
	due, idle := flow.Idle(tb.state)
	parkedUntil, parked := flow.Parked(tb.state)
	require.True(tb.t, !parked || idle && parkedUntil == due, "what is parked is idle")
	for _, e := range outstanding {
		_, alarm := e.(flow.Alarm)
		require.True(tb.t, !parked || alarm, "a parked task owes %s", effectText(e))
		switch e := e.(type) {
		case flow.Alarm:
			require.True(tb.t, !idle || due > 0 && due <= e.At, "an idle task would miss %s", effectText(e))
		case flow.Dispatch:
			require.True(tb.t, !idle || e.Job.Exec.Type == flow.ExecQueue, "an idle task carries %s", effectText(e))
		}
	}
	if root := tb.state.Root; root != nil && root.Step != nil {
		require.Subset(tb.t, effectTexts(outstanding), effectTexts(flow.OutstandingOf(tb.state, root.Step.Address(), tb.env.Member)))
	}
	for _, w := range flow.Waiting(tb.state) {
		require.NotEmpty(tb.t, w.For+w.Text)
	}
}
