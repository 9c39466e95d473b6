package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// does runs commands, none of which may be rejected.
func (tb *table) does(t *testing.T, commands ...flow.Command) {
	t.Helper()
	for _, c := range commands {
		_, err := tb.do(c)
		require.NoError(t, err, "%#v", c)
	}
}

func signal(key, value string) flow.Signal {
	return flow.Signal{Key: key, Value: json.RawMessage(value)}
}

// askAgain asks for approval before each payment.
const askAgain = `start: next
nodes:
  next: {kind: choice}
  ask: {kind: approval, params: {approval_key: $shared.decision}, post: {output_key: decision}}
  pay: {exec_type: queue, service: pay}
edges:
  - {from: next, action: default, to: ask}
  - {from: ask, action: approved, to: pay}
  - {from: ask, action: rejected, to: next}
  - {from: pay, action: default, to: next}`

// visitOf returns the visit of the only open approval.
func visitOf(t *testing.T, tb *table) int {
	t.Helper()
	open := tb.state.Approvals()
	require.Len(t, open, 1)
	return open[0].Visit
}

func TestEachVisitOfAnApprovalNeedsAnAnswer(t *testing.T) {
	for name, answer := range map[string]func(visit int, value string) flow.Command{
		"by an answer": func(visit int, value string) flow.Command {
			return flow.Answer{Address: flow.Address{Node: "ask", Visit: visit}, Value: json.RawMessage(value)}
		},
		"by a signal": func(_ int, value string) flow.Command { return signal("decision", value) },
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, askAgain))
			tb.does(t, flow.Start{}, answer(1, "true"))
			tb.work()
			require.Equal(t, 2, visitOf(t, tb), "one approval pays once")
			tb.crash("m2", 0)
			require.Equal(t, 2, visitOf(t, tb), "so it does after a crash")
			tb.does(t, answer(2, "false"))
			require.Equal(t, 3, visitOf(t, tb), "one rejection leads back once")
			steps := tb.state.Steps
			tb.wait(100_000)
			require.Equal(t, steps, tb.state.Steps)
		})
	}
}

func TestALateAnswerDoesNotCountForAnotherVisit(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, askAgain))
	first := flow.Answer{Address: flow.Address{Node: "ask", Visit: 1}, Action: "approved"}
	tb.does(t, flow.Start{}, first)
	tb.work()
	_, err := tb.do(first)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	require.Equal(t, 2, visitOf(t, tb))
	require.NotEqual(t, flow.ApprovalID("t", first.Address), flow.ApprovalID("t", tb.state.Approvals()[0].Address), "links name the visit")
}

func TestARepeatedWaitNeedsAnotherSignal(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `start: w
nodes: {w: {kind: wait_event, params: {signal_key: go}}, a: {exec_type: queue, service: a}}
edges: [{from: w, action: default, to: a}, {from: a, action: default, to: w}]`))
	tb.does(t, flow.Start{}, signal("go", "1"))
	require.Equal(t, "a", tb.state.Root.Cursor)
	tb.does(t, signal("go", "2"), signal("go", "false"), signal("go", "3"))
	tb.crash("m2", 0)
	tb.work()
	tb.work()
	var heard []string
	for _, e := range tb.events {
		if e.Type == flow.StepEnded && e.Node == "w" {
			heard = append(heard, string(e.Output))
		}
	}
	require.Equal(t, []string{"1", "2", "3"}, heard, "those that came before count once, in their order; false is no signal")
	require.Equal(t, "w", tb.state.Root.Cursor)
	require.Empty(t, tb.state.Signals)
}

func TestUnconsumedSignalsAreBounded(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `start: a
nodes: {a: {exec_type: queue, service: a}, w: {kind: wait_event, params: {signal_key: go}}, v: {kind: wait_event, params: {signal_key: go}}}
edges: [{from: a, action: default, to: w}, {from: w, action: default, to: v}]`))
	tb.does(t, flow.Start{})
	for i := range flow.MaxSignals {
		tb.does(t, signal("go", fmt.Sprint(i+1)))
	}
	_, err := tb.do(signal("go", "0"))
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "the task has 1000 signals that no step has taken yet")
	tb.does(t, signal("other", "1"))
	require.Len(t, tb.state.Signals, flow.MaxSignals, "what no step waits for is not stored")
	tb.does(t, signal("go", "null"))
	require.Empty(t, tb.state.Signals, "an empty value takes them back")
	tb.does(t, signal("go", "1"))
	tb.work()
	require.Equal(t, "v", tb.state.Root.Cursor, "one signal ends one wait of a graph")
}

func TestEachNodeOfADagConsumesASignalOnce(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `mode: dag
nodes:
  a: {kind: wait_event, params: {signal_key: go}}
  b: {kind: subflow, flow: {start: w, nodes: {w: {kind: approval, params: {approval_key: go}}, v: {kind: wait_event, params: {signal_key: go}}}, edges: [{from: w, action: approved, to: v}]}}
  late: {service: s}
  c: {kind: wait_event, params: {signal_key: go}, depends_on: [late]}`))
	tb.does(t, flow.Start{}, signal("go", "true"))
	require.Equal(t, "b/v", firstWaiting(tb), "the flow in b takes each signal once")
	tb.work()
	require.Equal(t, "b/v", firstWaiting(tb), "c has taken the one that came before it began")
	tb.does(t, signal("go", "2"))
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func firstWaiting(tb *table) string {
	_, first := tb.state.Waits()
	if first == nil {
		return ""
	}
	return flow.Address{Scope: first.Scope, Node: first.Node}.Step()
}

func TestARepeatedSubflowNeedsAnotherAnswer(t *testing.T) {
	for name, inner := range map[string]string{
		"a graph": `subflow: {start: ask, nodes: {ask: {kind: approval, params: {approval_key: ok}}}}`,
		"a dag":   `flow: {mode: dag, nodes: {ask: {kind: approval, params: {approval_key: ok}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, "---\n"+`{start: s, nodes: {s: {kind: subflow, `+
				inner+`}}, edges: [{from: s, action: default, to: s}]}`))
			tb.does(t, flow.Start{}, signal("ok", "true"))
			open := tb.state.Approvals()
			require.Len(t, open, 1)
			require.Equal(t, "s#2", open[0].Scope)
			tb.does(t, flow.Answer{Address: open[0].Address, Action: "rejected"})
			require.Equal(t, "s#3", tb.state.Approvals()[0].Scope)
		})
	}
}

func TestAPocketFlowFlowReusesTheFirstAnswer(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "profile: pocketflow\n"+askAgain))
	tb.env.Limits = flow.Limits{Steps: 100}
	tb.does(t, flow.Start{}, signal("decision", "false"))
	tb.drain()
	require.Contains(t, tb.state.Error, "the task has run 100 steps")
}

func TestALoopWithoutWorkOrTimeEndsEarly(t *testing.T) {
	const loop = "---\n" + `{start: a, nodes: {a: {kind: choice}, b: {kind: %s}}, edges: ` +
		`[{from: a, action: default, to: b}, {from: b, action: default, to: a}]}`
	for _, b := range []string{"choice", "timer, params: {delay_ms: 0}", "subflow, subflow: {start: c, nodes: {c: {kind: choice}}}"} {
		tb := newTable(t, flowtest.Plan(t, fmt.Sprintf(loop, b)))
		tb.does(t, flow.Start{})
		for range 100 {
			tb.tell(flow.Proceed{})
		}
		require.Equal(t, flow.TaskFailed, tb.state.Status, b)
		require.Equal(t, "limit: 10000 steps in a row had no work and no time to wait for, "+
			"which is an endless loop around node a; put a timer, an approval, a wait_event or "+
			"work into it", tb.state.Error)
	}
	tb := newTable(t, flowtest.Plan(t, fmt.Sprintf(loop, "timer, params: {delay_ms: 1}")))
	tb.does(t, flow.Start{})
	for range 12_000 {
		tb.wait(1)
	}
	require.Equal(t, flow.TaskRunning, tb.state.Status)
	require.Greater(t, tb.state.Steps, 20_000)
}

func TestTaskParamsCannotSetControlParams(t *testing.T) {
	params := json.RawMessage(`{"delay_ms":1,"timeout_ms":2,"signal_key":"$params.z","approval_key":"$params.z","z":true,"wait":70}`)
	for definition, due := range map[string]int64{
		"{start: n, nodes: {n: {kind: timer, params: {delay_ms: 50}}}}":                                 50,
		"{start: n, nodes: {n: {kind: timer, params: {delay_ms: $params.wait}}}}":                       70,
		"{start: n, nodes: {n: {kind: timer, params: {delay_ms: $params.delay_ms}}}}":                   1,
		"{start: n, nodes: {n: {kind: wait_event, params: {signal_key: x}}}}":                           0,
		"{start: n, nodes: {n: {kind: wait_event, timeout_ms: 90, params: {signal_key: x}}}}":           90,
		"{start: n, nodes: {n: {kind: wait_event, params: {signal_key: x, timeout_ms: $params.wait}}}}": 70,
		"{start: n, nodes: {n: {kind: approval, params: {approval_key: x}}}}":                           0,
		"{nodes: {n: {kind: timer, params: {delay_ms: 50}}}}":                                           50,
		"{nodes: {n: {kind: timer, params: {delay_ms: $run.wait}}}}":                                    70,
		"{nodes: {n: {kind: wait_event, params: {signal_key: x}}}}":                                     0,
		"{nodes: {n: {kind: approval, params: {approval_key: x}}}}":                                     0,
	} {
		tb := newTable(t, flowtest.Plan(t, "---\n"+definition))
		tb.does(t, flow.Start{Params: params})
		_, first := tb.state.Waits()
		require.NotNil(t, first, definition)
		if due > 0 {
			due += first.Since
		}
		require.Equal(t, due, first.Due, definition)
		if first.Kind != "timer" {
			require.Equal(t, "x", first.Key, definition)
		}
	}
}

func TestTaskParamsSetControlParamsInThePocketFlowProfile(t *testing.T) {
	params := json.RawMessage(`{"delay_ms":7,"timeout_ms":70,"signal_key":"$shared.theirs","approval_key":"$shared.theirs"}`)
	const child = "---\n{profile: pocketflow, start: s, nodes: {s: {kind: subflow, subflow: {start: n, nodes: {n: %s}}}}}"
	for definition, want := range map[string]struct {
		due int64
		key string
	}{
		"{kind: timer, params: {delay_ms: 50}}":                                        {due: 7},
		"{kind: timer}":                                                                {due: 7},
		"{kind: wait_event, params: {signal_key: $shared.ours}}":                       {70, "theirs"},
		"{kind: wait_event, params: {signal_key: $shared.ours, timeout_ms: 90}}":       {70, "theirs"},
		"{kind: wait_event, timeout_ms: 90, params: {signal_key: $shared.ours}}":       {70, "theirs"},
		"{kind: approval, params: {approval_key: $shared.ours}}":                       {0, "theirs"},
		"child {kind: timer, params: {delay_ms: 50}}":                                  {due: 50},
		"child {kind: wait_event, params: {signal_key: $shared.ours, timeout_ms: 90}}": {90, "ours"},
		"child {kind: approval, params: {approval_key: $shared.ours}}":                 {0, "ours"},
	} {
		text := fmt.Sprintf("---\n{profile: pocketflow, start: n, nodes: {n: %s}}", definition)
		if inner, isChild := strings.CutPrefix(definition, "child "); isChild {
			text = fmt.Sprintf(child, inner)
		}
		tb := newTable(t, flowtest.Plan(t, text))
		tb.does(t, flow.Start{Params: params})
		_, first := tb.state.Waits()
		require.NotNil(t, first, definition)
		require.Equal(t, want.key, first.Key, definition)
		if want.due > 0 {
			want.due += first.Since
		}
		require.Equal(t, want.due, first.Due, definition)
		if want.key == "" {
			continue
		}
		other := map[string]string{"ours": "theirs", "theirs": "ours"}[want.key]
		tb.does(t, signal(other, "true"))
		require.Equal(t, flow.TaskRunning, tb.state.Status, definition)
		tb.does(t, signal(want.key, "true"))
		require.Equal(t, flow.TaskCompleted, tb.state.Status, definition)
	}
}
