package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// foreseen returns the prediction for a fork, or for a new task if fork is nil.
func (tb *table) foreseen(t *testing.T, plan *flow.Plan, fork *flow.ForkPlan, params string) (told []string, end flow.TaskStatus) {
	t.Helper()
	start := flow.Start{Version: "v2", Params: json.RawMessage(params)}
	if fork != nil {
		start = fork.Start("v2", start.Params, nil)
	}
	f, err := flow.Foresee(plan, start, tb.events, tb.state.Plan, tb.env)
	require.NoError(t, err)
	require.False(t, f.More)
	for _, s := range f.Steps {
		text := s.Step() + " " + string(s.How)
		if s.Calls > 0 {
			text += fmt.Sprintf(" %s %d", s.Service, s.Calls)
		}
		if s.Output.Begin != "" {
			text += " = " + s.Output.Begin
		}
		told = append(told, text)
	}
	return told, f.Status
}

const checkout = `
start: price
nodes:
	price: {exec_type: push, service: price, prep: {input_key: $params.sku}, post: {output_key: price}}
	large: {kind: choice, choice_cases: [{action: ask, expr: {gt: [$shared.price, LIMIT]}}], default_action: pay}
	ask: {kind: approval, params: {approval_key: $shared.ok}}
	wait: {kind: timer, params: {delay_ms: 60000}}
	pay: {exec_type: push, service: pay, prep: {input_key: $shared.price}, post: {output_key: paid}}
edges:
	- {from: price, action: default, to: large}
	- {from: large, action: ask, to: ask}
	- {from: large, action: pay, to: wait}
	- {from: wait, action: default, to: pay}
`

func TestADryRunUsesRecordedResultsAndMakesNoCalls(t *testing.T) {
	limited := func(limit string) string { return strings.ReplaceAll(checkout, "LIMIT", limit) }
	tb := history(t, limited("100"), `{"sku":"tea"}`, func(j flow.Job) flow.Report {
		return flow.Report{Address: j.Address, Output: json.RawMessage(map[string]string{"price": `7`, "pay": `"receipt"`}[j.Exec.Service])}
	})
	before := len(tb.events)
	same := planOf(t, limited("100"))

	told, end := tb.foreseen(t, same, nil, `{"sku":"tea"}`)
	require.Equal(t, []string{"price recorded = 7", "large decided", "wait decided", `pay recorded = "receipt"`}, told)
	require.Equal(t, flow.TaskCompleted, end)

	told, end = tb.foreseen(t, same, nil, `{"sku":"coffee"}`)
	require.Equal(t, []string{"price called price 1"}, told, "nobody knows what follows from another input")
	require.Empty(t, end)

	strict := planOf(t, limited("5"))
	told, end = tb.foreseen(t, strict, nil, `{"sku":"tea"}`)
	require.Equal(t, []string{"price recorded = 7", "large decided", "ask waits"}, told, "another version decides otherwise")
	require.Empty(t, end)

	fork, err := flow.PlanFork("task-1", tb.events, tb.state.Plan, same, flow.ForkPoint{Node: "pay"})
	require.NoError(t, err)
	told, _ = tb.foreseen(t, same, &fork, "")
	require.Equal(t, []string{`pay recorded = "receipt"`}, told, "what is kept is not done")
	require.Len(t, tb.events, before)
}

func TestADryRunOfADagContinuesBesideOpenNodes(t *testing.T) {
	const definition = `
nodes:
	a: {service: a, inputs: {v: {ref: $run.a}}}
	b: {service: b, inputs: {v: {ref: $run.b}}}
	each: {service: each, each: {items: $run.items}}
	after: {service: after, inputs: {v: {ref: $deps.a}}, depends_on: [a]}
	both: {service: both, depends_on: [a, b]}
`
	tb := history(t, definition, `{"a":1,"b":2,"items":[1,2,3]}`, func(j flow.Job) flow.Report {
		return flow.Report{Address: j.Address, Output: json.RawMessage(`"` + j.Exec.Service + `"`)}
	})
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	changed := planOf(t, strings.ReplaceAll(definition, "service: b,", "service: better,"))
	told, end := tb.foreseen(t, changed, nil, `{"a":1,"b":2,"items":[1,2,3]}`)
	require.ElementsMatch(t, []string{`a recorded = "a"`, "b called better 1", "each recorded", `after recorded = "after"`}, told)
	require.Empty(t, end)
	told, _ = tb.foreseen(t, changed, nil, `{"a":1,"b":3,"items":[1,2,3]}`)
	require.ElementsMatch(t, []string{"a called a 1", "b called better 1", "each called each 3"},
		told, "whoever is called is told what the task was started with, too")
}

func TestADryRunOfAnEndlessLoopEnds(t *testing.T) {
	const definition = `
start: a
nodes:
	a: {kind: choice, choice_cases: [], default_action: again}
edges:
	- {from: a, action: again, to: a}
`
	plan := planOf(t, definition)
	f, err := flow.Foresee(plan, flow.Start{Version: "v", Params: json.RawMessage(`{}`)}, nil, plan, newTable(t, plan).env)
	require.NoError(t, err)
	require.True(t, f.More)
	require.LessOrEqual(t, len(f.Steps), 1000)
}
