package flow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const sized = `
start: size
nodes:
  size:
    kind: choice
    choice_cases: [{action: large, expr: {gt: [$params.ammount, 1000]}}]
    default_action: small
  big: {service: echo}
  little: {service: echo}
  help: {service: echo}
edges:
  - {from: size, action: large, to: big}
  - {from: size, action: small, to: little}
`

// visited returns the nodes that were entered.
func (tb *table) visited() (nodes []string) {
	for _, e := range tb.events {
		if e.Type == flow.StepEntered {
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}

func TestAConditionThatComparesSomethingMissingFailsItsStep(t *testing.T) {
	const text = `size: choice_cases[0]: expression {"gt":["$params.ammount",1000]}: ` +
		`$params.ammount is missing: see that it is there, or ask {"exists": "$params.ammount"} first`
	for name, tt := range map[string]struct {
		say     string
		status  flow.TaskStatus
		visited []string
	}{
		"nothing is said":      {"", flow.TaskFailed, []string{"size"}},
		"on_missing says fail": {"on_missing: fail\n", flow.TaskFailed, []string{"size"}},
		// without an action no edge matches
		"it is followed":             {"on_error: follow\n", flow.TaskFailed, []string{"size"}},
		"an error edge handles it":   {"x: {}\n", flow.TaskCompleted, []string{"size", "help"}},
		"what is missing is coerced": {"on_missing: coerce\n", flow.TaskCompleted, []string{"size", "little"}},
	} {
		t.Run(name, func(t *testing.T) {
			definition := tt.say + sized
			if name == "an error edge handles it" {
				definition = sized + "  - {from: size, action: error, to: help}\n"
			}
			tb := newTable(t, flowtest.Plan(t, definition))
			tb.toTheEnd()
			require.Equal(t, tt.status, tb.state.Status)
			require.Equal(t, tt.visited, tb.visited())
			if tt.status == flow.TaskFailed {
				require.Equal(t, text, tb.state.Error)
			}
		})
	}
}

func TestAFailedConditionIsNotRetried(t *testing.T) {
	for name, inside := range map[string]string{
		"graph": `start: x, nodes: {x: {kind: choice, choice_cases: [{action: a, expr: {eq: [$shared.none, 1]}}]}}`,
		"dag":   `mode: dag, nodes: {x: {service: echo, when: {expr: "run.none == 1"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, "start: s\nnodes: {s: {kind: subflow, "+
				"failure_strategy: retry, retry: {max_attempts: 5}, flow: {"+inside+"}}}\n"))
			tb.toTheEnd()
			require.Equal(t, flow.TaskFailed, tb.state.Status)
			require.Equal(t, 2, tb.state.Steps, "the condition, and the subflow")
			require.Regexp(t, `^s/x: .*(none) is missing`, tb.state.Error)
		})
	}
}

func TestANestedFlowTreatsMissingValuesLikeItsParent(t *testing.T) {
	const inside = `s: {kind: subflow, flow: {%s start: x, nodes: {x: {kind: choice, ` +
		`choice_cases: [{action: a, expr: {eq: [$shared.none, null]}}]}}}}`
	for say, want := range map[string]flow.TaskStatus{
		``:                  flow.TaskCompleted,
		`on_missing: fail,`: flow.TaskFailed,
		// the embedded flow would have to set coerce itself
		`embedded: published,`: flow.TaskFailed,
	} {
		tb := newTable(t, flowtest.Plan(t, "start: s\non_missing: coerce\nnodes:\n  "+fmt.Sprintf(inside, say)+"\n"))
		tb.toTheEnd()
		require.Equal(t, want, tb.state.Status, say)
	}
}

func TestTheOutputOfASkippedDependencyIsNull(t *testing.T) {
	for expr, runs := range map[string]bool{
		`deps.b == null && deps.a != null`: true,
		`input.b == null`:                  true,
		`has(deps.b)`:                      false,
		`has(deps.b) || deps.a.n > 1`:      true,
		`deps.b == null ? true : deps.b.x`: true,
	} {
		tb := newTable(t, flowtest.Plan(t, `
mode: dag
nodes:
  a: {service: echo}
  b: {service: echo, when: {if: {run: {no: 1}}}, skip_mode: optional}
  c: {service: echo, depends_on: [a, b], when: {expr: "`+expr+`"}}
`))
		tb.hands = func(j flow.Job) flow.Report { return flow.Report{Address: j.Address, Output: []byte(`{"n":5}`)} }
		tb.toTheEnd()
		require.Equal(t, flow.TaskCompleted, tb.state.Status, "%s: %s", expr, tb.state.Error)
		require.Equal(t, runs, tb.state.Root.Nodes[tb.state.Plan.Root.Nodes["c"].Dag.Index].Status() == flow.StepCompleted, expr)
	}
}

func TestFieldsOfASkippedDependencyAreMissing(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
mode: dag
nodes:
  b: {service: echo, when: {if: {run: {no: 1}}}, skip_mode: optional}
  c: {service: echo, depends_on: [b], when: {expr: deps.b.x > 1}}
`))
	tb.toTheEnd()
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Contains(t, tb.state.Error, `c: when.expr: expression "deps.b.x > 1": deps.b.x is `+
		`missing: see that it is there, or ask has(deps.b.x) first`)
}
