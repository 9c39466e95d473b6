package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestTheOrderOfCompletionsDoesNotMatter runs the same random dag in several orders. All of them
// end with the same statuses, outputs and result. No node begins before its dependencies have
// ended, and no node that could run is left.
func TestTheOrderOfCompletionsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { orderDoesNotMatter(rt, flowtest.Rapid{T: rt}) })
}

func orderDoesNotMatter(t require.TestingT, d flowtest.Dice) {
	flow := tame(flowtest.RandomDag(d, 0)).(flowtest.Object)
	definition, err := json.Marshal(flow)
	require.NoError(t, err)
	plan := flowtest.Plan(t, string(definition))
	first := playInOrder(t, plan, func(int) int { return 0 })
	require.Equal(t, first, playInOrder(t, plan, func(n int) int { return n - 1 }), "%s", definition)
	for range 3 {
		require.Equal(t, first, playInOrder(t, plan, func(n int) int { return d.Pick("next", n) }), "%s", definition)
		require.Equal(t, first, playTogether(t, plan, func(n int) int { return d.Pick("next", n) }), "%s", definition)
	}
}

// tame removes the parts of a definition that depend on time or order by design: timeouts,
// fail_fast, and flows of graph mode, whose shared state shows the last writer.
func tame(part any) any {
	n, ok := part.(flowtest.Object)
	if !ok {
		return part
	}
	for key, v := range n {
		n[key] = tame(v)
	}
	for _, key := range []string{"timeout", "timeout_ms", "start_timeout", "heartbeat_timeout", "concurrency", "rate", "priority"} {
		delete(n, key)
	}
	switch {
	case n["mode"] == "dag":
		n["on_error"] = "continue"
	case n["start"] != nil:
		return flowtest.Object{"start": "x",
			"nodes": flowtest.Object{"x": flowtest.Object{"service": oneOfKeys(n, "echo", "boom"),
				"post": flowtest.Object{"output_key": "out"}}}}
	case n["signal_key"] != nil:
		n["signal_key"] = "$shared.flag"
	case n["approval_key"] != nil:
		n["approval_key"] = "verdict"
	}
	return n
}

// oneOfKeys chooses by the size of an object.
func oneOfKeys(n flowtest.Object, from ...string) string {
	return from[len(n["nodes"].(flowtest.Object))%len(from)]
}

// ended is the outcome of a task.
type ended struct {
	Status flow.TaskStatus
	Result string
	Nodes  []string
}

// playInOrder runs a task to its end; next chooses the next attempt in flight.
func playInOrder(t require.TestingT, plan *flow.Plan, next func(n int) int) ended {
	return playBy(t, plan, func(tb *table, open []flow.Address) flow.Command { return tb.completion(open[next(len(open))]) })
}

// playTogether reports several attempts at once, each a random number of times.
func playTogether(t require.TestingT, plan *flow.Plan, next func(n int) int) ended {
	return playBy(t, plan, func(tb *table, open []flow.Address) flow.Command {
		var all flow.Reports
		for range 1 + next(2*len(open)) {
			all = append(all, tb.completion(open[next(len(open))]))
		}
		return all
	})
}

// completion returns the report of an attempt in flight.
func (tb *table) completion(a flow.Address) flow.Report {
	if job, ok := tb.jobs[a]; ok {
		return tb.hands(job)
	}
	return tb.finishDirectly(a, "")
}

// playBy runs a task to its end; next returns the next command while attempts are in flight.
func playBy(t require.TestingT, plan *flow.Plan, next func(tb *table, open []flow.Address) flow.Command) ended {
	tb := newTable(t, plan)
	_, err := tb.do(flow.Start{Params: paramsFor(plan)})
	require.NoError(t, err)
	for _, key := range []string{"flag", "verdict"} {
		_, err := tb.do(flow.Signal{Key: key, Value: json.RawMessage(`true`)})
		require.NoError(t, err)
	}
	for range 2_000 {
		open := append(tb.open(), tb.direct()...)
		switch {
		case tb.state.Status.Ended():
			require.NoError(t, startedInTime(plan, tb.events))
			return endOf(tb.state)
		case len(open) == 0:
			before := len(tb.events)
			if tb.wait(1_000); len(tb.events) == before { // a step waits again in another visit
				tb.signalAll()
			}
			continue
		}
		_, err = tb.do(next(tb, open))
		require.NoError(t, err)
	}
	require.FailNow(t, "the task is stuck", "%s", stateText(tb.state))
	return ended{}
}

func endOf(s *flow.State) ended {
	e := ended{Status: s.Status, Result: oneLine(s.Result())}
	for i, n := range s.Root.Plan.Dag.List {
		e.Nodes = append(e.Nodes, fmt.Sprintf("%s %s %s", n.Key, s.Root.Nodes[i].Status(), oneLine(flow.OrNull(s.Root.Nodes[i].Output))))
	}
	return e
}

// startedInTime checks that all dependencies of a step had ended when it began.
func startedInTime(plan *flow.Plan, events []flow.Event) error {
	s := flow.NewState("t", plan)
	for i := range events {
		e := &events[i]
		if sc := s.Scope(e.Scope); e.Type == flow.StepEntered && sc.Plan.Dag != nil {
			n := sc.Plan.Nodes[e.Node]
			for _, dep := range n.Dag.Deps {
				if !sc.Nodes[dep].Ended() {
					return fmt.Errorf("%s began before %s had ended", n.Key, sc.Plan.Dag.List[dep].Key)
				}
			}
		}
		flow.Evolve(s, e)
	}
	return nil
}
