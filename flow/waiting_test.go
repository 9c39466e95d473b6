package flow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestJobsInFlightAreDescribedByName(t *testing.T) {
	for node, want := range map[string]string{
		"{service: s}":                                   "a push job of service s is running",
		"{exec_type: local_func, func: mul}":             "a local_func job of service mul is running",
		"{exec_type: local_script, script: {code: 'x'}}": "a local_script job is running",
	} {
		tb := newTable(t, flowtest.Plan(t, "start: a\nnodes: {a: "+node+"}"))
		_, err := tb.do(flow.Start{})
		require.NoError(t, err)
		require.Equal(t, want, flow.Waiting(tb.state)[0].Text)
	}
}

func TestAnEndedTaskIsNotPaused(t *testing.T) {
	for node, status := range map[string]flow.TaskStatus{
		"{kind: approval, params: {approval_key: $shared.go}}": flow.TaskCompleted,
		"{kind: timer, params: {delay_ms: 9000}}":              flow.TaskCanceled,
	} {
		tb := newTable(t, flowtest.Plan(t, "start: a\nnodes: {a: "+node+"}"))
		for _, c := range []flow.Command{flow.Start{}, flow.Pause{}, flow.Signal{Key: "go", Value: []byte("1")}} {
			_, err := tb.do(c)
			require.NoError(t, err)
		}
		if status == flow.TaskCanceled {
			require.True(t, tb.state.Paused())
			_, err := tb.do(flow.Cancel{})
			require.NoError(t, err)
		}
		require.Equal(t, status, tb.state.Status)
		require.False(t, tb.state.Paused())
		_, err := tb.do(flow.Resume{})
		require.ErrorContains(t, err, "the task has ended")
	}
}

// Parked is called with every row of a task, so its cost must not depend on the size of the task.
func TestATaskWithFewWaitingPlainStepsIsParked(t *testing.T) {
	waits := func(n int) string {
		nodes := "profile: pgflow\nnodes:\n"
		for i := range n {
			nodes += fmt.Sprintf("  w%d: {kind: wait_event, params: {signal_key: k%d}}\n", i, i)
		}
		return nodes
	}
	for name, c := range map[string]struct {
		definition string
		parked     bool
	}{
		"an approval":   {"start: a\nnodes: {a: {kind: approval, params: {approval_key: ok}}}", true},
		"a job":         {"start: a\nnodes: {a: {service: s}}", false},
		"a queue's job": {"start: a\nnodes: {a: {exec_type: queue, service: s}}", false},
		"an approval inside": {"start: a\nnodes: {a: {kind: subflow, subflow: {start: b, " +
			"nodes: {b: {kind: approval, params: {approval_key: ok}}}}}}", false},
		"as many as may wait":    {waits(64), true},
		"more than that":         {waits(65), false},
		"one that is to be done": {"profile: pgflow\nnodes: {a: {route: direct}}", true},
	} {
		tb := newTable(t, flowtest.Plan(t, c.definition))
		_, err := tb.do(flow.Start{})
		require.NoError(t, err, name)
		_, parked := flow.Parked(tb.state)
		require.Equal(t, c.parked, parked, name)
	}
}

func TestASignalEndsWaitingStepsInDefinitionOrder(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
profile: pgflow
nodes:
  before: {kind: wait_event, params: {signal_key: first}}
  one: {kind: wait_event, depends_on: [before], params: {signal_key: both}}
  two: {kind: wait_event, params: {signal_key: both}}
`))
	for _, c := range []flow.Command{flow.Start{}, flow.Signal{Key: "first", Value: []byte("1")}} {
		_, err := tb.do(c)
		require.NoError(t, err)
	}
	// table also lets a reloaded state decide this
	d, err := tb.do(flow.Signal{Key: "both", Value: []byte("1")})
	require.NoError(t, err)
	var ended []string
	for _, e := range d.Events {
		if e.Type == flow.StepEnded {
			ended = append(ended, e.Node)
		}
	}
	require.Equal(t, []string{"one", "two"}, ended, "two has waited for longer")
}
