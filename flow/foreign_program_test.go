package flow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestOnlyTheDefinitionNamesProgramsForWorkers starts tasks with a program in their params, which a
// worker would run.
func TestOnlyTheDefinitionNamesProgramsForWorkers(t *testing.T) {
	const brought = `{"exec":{"type":"process","command":"theirs"},"\u0045xeC":{"type":"process"},"EXEC":{"type":"process"},"kept":1}`
	const own = `exec: {type: process, service: w, command: ours}`
	for name, tt := range map[string]struct{ definition, command string }{
		"a node of a graph": {`{start: a, nodes: {a: {service: w}}}`, "null"},
		"with a program":    {`{start: a, nodes: {a: {` + own + `}}}`, `"ours"`},
		"with variables": {`{start: a, nodes: {a: {exec: {type: process, service: w, ` +
			`command: ours, env: {A: "${params.kept}"}}}}}`, `"ours"`},
		"in profile pocketflow": {`{profile: pocketflow, start: a, nodes: {a: {service: w}}}`, "null"},
		"with a program there":  {`{profile: pocketflow, start: a, nodes: {a: {` + own + `}}}`, `"ours"`},
		"a list": {`{start: a, nodes: {a: {kind: foreach, service: w, prep: ` +
			`{input_key: $params.list}}}}`, "null"},
		"branches": {`{start: a, nodes: {a: {kind: parallel, parallel_services: [w]}}}`, "null"},
		"a branch with a program": {`{start: a, nodes: {a: {kind: parallel, parallel_execs: ` +
			`[{service: w, params: {exec: {command: ours}}}]}}}`, `"ours"`},
		"a subflow": {`{start: s, nodes: {s: {kind: subflow, subflow: {start: a, ` +
			`nodes: {a: {service: w}}}}}}`, "null"},
		"a dag":                {`{nodes: {a: {service: w}}}`, "null"},
		"a dag with a program": {`{nodes: {a: {` + own + `}}}`, `"ours"`},
		"units of a dag":       {`{nodes: {a: {service: w, each: {items: $run.list}}}}`, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			tb, jobs := newTable(t, flowtest.Plan(t, "# in YAML\n"+tt.definition)), 0
			tb.hands = func(j flow.Job) flow.Report {
				jobs++
				require.Equal(t, tt.command, string(expr.Path(j.Params, "exec.command")))
				for _, foreign := range []string{"EXEC", "ExeC"} {
					_, there := expr.Field(j.Params, foreign)
					require.False(t, there, string(j.Params))
				}
				require.Equal(t, "1", string(expr.Path(j.Params, "kept")))
				return flow.Report{Address: j.Address, Output: json.RawMessage(`{}`)}
			}
			_, err := tb.do(flow.Start{Version: "v", Params: expr.Merge(json.RawMessage(brought), json.RawMessage(`{"list":[1]}`))})
			require.NoError(t, err)
			tb.work()
			require.Equal(t, 1, jobs, tb.state.Error)
		})
	}
}

func TestAParamNamedLikeAProgramIsAnyOtherValue(t *testing.T) {
	tb, jobs := newTable(t, flowtest.Plan(t, `{"start":"a","nodes":{"a":{"service":"w"}}}`)), 0
	tb.hands = func(j flow.Job) flow.Report {
		jobs++
		require.JSONEq(t, `{"exec":"fast"}`, string(j.Params))
		return flow.Report{Address: j.Address, Output: json.RawMessage(`{}`)}
	}
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{"exec":"fast"}`)})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, 1, jobs)
}

// TestJobsOfAStepShareItsParams counts allocations: reading the params for each unit would make a
// list of n elements cost n² steps.
func TestJobsOfAStepShareItsParams(t *testing.T) {
	allocations := func(params int) float64 {
		const definition = `{start: a, nodes: {a: {kind: foreach, service: w, parallel_mode: concurrent, prep: {input_key: $params.list}}}}`
		tb := newTable(t, flowtest.Plan(t, "# in YAML\n"+definition))
		given := map[string]any{"list": []int{1, 2}}
		for i := range params {
			given[fmt.Sprint("p", i)] = i
		}
		b, err := json.Marshal(given)
		require.NoError(t, err)
		_, err = tb.do(flow.Start{Version: "v", Params: b})
		require.NoError(t, err)
		address := tb.state.Root.Step.Address()
		address.Attempt = 1
		return testing.AllocsPerRun(10, func() {
			_, ok := tb.state.Job(address)
			require.True(t, ok)
		})
	}
	require.Equal(t, allocations(1), allocations(1000))
}
