package flow_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestATaskBeginsWithTheDeclaredInputs(t *testing.T) {
	for name, definition := range map[string]string{
		"graph": "inputs: {amount: int, limit: int = 3}\nstart: a\nnodes: {a: {service: s, prep: {input_key: $params.limit}}}",
		"dag":   "inputs: {amount: int, limit: int = 3}\nnodes: {a: {service: s, prep: {input_key: $run.limit}}}",
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, definition))
			_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{"limit":"x","q":1}`)})
			var bad *flow.BadInputs
			require.ErrorAs(t, err, &bad)
			require.Len(t, bad.Problems, 3)
			require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
			require.EqualError(t, err, `3 inputs do not fit: $params.amount: is missing: an int `+
				`was declared; $params.limit: is text "x", an int was declared; $params.q: is `+
				`not declared: there is amount, limit`)

			_, err = tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{"amount":7}`)})
			require.NoError(t, err)
			require.Equal(t, `{"amount":7,"limit":3}`, string(tb.state.Params), "the history tells what ran")
			for _, job := range tb.jobs {
				require.Equal(t, `3`, string(job.Input))
			}
			require.Len(t, tb.jobs, 1)
		})
	}
}

func TestInputsAreCheckedOnlyOnce(t *testing.T) {
	plan := flowtest.Plan(t, "inputs: {amount: int}\nnodes: {a: {service: s}}")
	start, err := flow.Start{Params: json.RawMessage(`{"amount":7}`)}.Fit(plan, flow.DefaultLimits)
	require.NoError(t, err)
	start.Params = json.RawMessage(`{"amount":"not looked at again"}`)
	_, err = start.Fit(plan, flow.DefaultLimits)
	require.NoError(t, err)
}

// ends runs a flow to its end.
func ends(t *testing.T, definition, params string) *flow.State {
	tb := newTable(t, flowtest.Plan(t, definition))
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(params)})
	require.NoError(t, err)
	for range 20 {
		for at, job := range tb.jobs {
			_, err := tb.do(flow.Report{Address: at, Output: job.Input})
			require.NoError(t, err)
			break
		}
	}
	require.True(t, tb.state.Status.Ended())
	return tb.state
}

func TestANestedFlowGetsItsDeclaredInputs(t *testing.T) {
	for name, tt := range map[string]struct {
		definition, params, result, err string
	}{
		"a graph in a graph sees what it declares of what is around it": {
			definition: "start: a\nresult: out\nnodes: {a: {kind: subflow, params: {own: 1}, " +
				"post: {output_key: out}, flow: {inputs: {own: int, n: int = 5}, start: b, " +
				"nodes: {b: {service: s, prep: {input_map: {own: $params.own, n: $params.n}}, " +
				"post: {output_key: got}}}}}}",
			params: `{"other":true}`, result: `{"got":{"n":5,"own":1}}`},
		"and does not begin with anything else": {
			definition: "start: a\non_error: fail\nnodes: {a: {kind: subflow, flow: {inputs: " +
				"{n: int}, start: b, nodes: {b: {service: s}}}}}",
			params: `{"n":"x"}`, err: `the flow inside takes something else: $params.n: is text ` +
				`"x", an int was declared`},
		"a dag in a graph": {
			definition: "start: a\nresult: out\nnodes: {a: {kind: subflow, post: {output_key: " +
				"out}, flow: {inputs: {n: int, m: int = 2}, nodes: {b: {service: s, prep: " +
				"{input_map: {n: $run.n, m: $run.m}}}}}}}",
			params: `{"n":1,"other":true}`, result: `{"b":{"m":2,"n":1}}`},
		"a dag in a dag": {
			definition: "nodes: {a: {kind: branch, prep: {input_map: {n: $run.x}}, flow: " +
				"{inputs: {n: int, m: int = 2}, nodes: {b: {service: s, prep: {input_map: {n: " +
				"$run.n, m: $run.m}}}}}}}",
			params: `{"x":1}`, result: `{"a":{"b":{"m":2,"n":1}}}`},
		"and is told what does not fit": {
			definition: "nodes: {a: {kind: branch, prep: {input_map: {n: $run.x, z: $run.x}}, " +
				"flow: {inputs: {n: int, m: int}, nodes: {b: {service: s}}}}}",
			params: `{"x":"q"}`, err: `$params.z: is not declared: there is n, m`},
		"a graph in a dag": {
			definition: "nodes: {a: {kind: branch, prep: {input_map: {n: $run.x}}, flow: " +
				"{inputs: {n: int, m: int = 2}, start: b, nodes: {b: {service: s, prep: " +
				"{input_map: {n: $params.n, m: $params.m}}, post: {output_key: got}}}}}}",
			params: `{"x":1}`, result: `{"a":{"got":{"m":2,"n":1}}}`},
		"what a handler makes": {
			definition: "nodes: {a: {kind: branch, prep: {service: p}, flow: {inputs: {run: " +
				"object, m: int = 2}, nodes: {b: {service: s, prep: {input_key: $run.m}}}}}}",
			params: `{"x":1}`, result: `{"a":{"b":2}}`},
		"and what it must not": {
			definition: "nodes: {a: {kind: branch, prep: {service: p}, flow: {inputs: {m: int = 2}, nodes: {b: {service: s}}}}}",
			params:     `{"x":1}`, err: `$params.run: is not declared: there is m`},
	} {
		t.Run(name, func(t *testing.T) {
			s := ends(t, tt.definition, tt.params)
			if tt.err != "" {
				require.Equal(t, flow.TaskFailed, s.Status)
				require.Contains(t, s.Error, tt.err)
				return
			}
			require.Equal(t, flow.TaskCompleted, s.Status, s.Error)
			require.JSONEq(t, tt.result, string(s.Result()))
		})
	}
}

func TestAnInputErrorIsOfKindInvalid(t *testing.T) {
	var e *flow.Error
	require.True(t, errors.As(error(&flow.BadInputs{}), &e))
}
