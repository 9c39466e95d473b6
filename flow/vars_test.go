package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// filled runs a task in which every job has the same output, and returns the variables of each
// attempt.
func filled(t *testing.T, definition, params, output string) (tb *table, envs map[string]map[string]string) {
	envs = map[string]map[string]string{}
	tb = newTable(t, flowtest.Plan(t, "# in YAML\n"+definition))
	tb.hands = func(j flow.Job) flow.Report {
		env := map[string]string{}
		if p := j.Exec.Program; p != nil {
			env = p.Env
		} else if raw := expr.Path(j.Params, "exec.env"); len(raw) > 4 {
			require.NoError(t, json.Unmarshal(raw, &env))
		}
		envs[fmt.Sprint(j.Step(), j.Unit)] = env
		return flow.Report{Address: j.Address, Output: json.RawMessage(output)}
	}
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(params)})
	require.NoError(t, err)
	tb.work()
	return tb, envs
}

const program = `exec: {type: process, command: x, `

func TestVariablesContainValues(t *testing.T) {
	const params = `{"day":"monday","n":2.50,"list":[{"id":"x"},{"id":7}],"deep":{"a":[1, {"b":true}]}}`
	for name, tt := range map[string]struct{ definition, env string }{
		"a param": {`{nodes: {z: {` + program +
			`env: {A: "on ${params.day}, ${ params.day }"}}}}}`, `{"A":"on monday, monday"}`},
		"in a graph": {`{start: z, nodes: {z: {` + program +
			`env: {A: "${params.day}", B: plain}}}}}`, `{"A":"monday","B":"plain"}`},
		"of the node":        {`{nodes: {z: {params: {own: 1}, ` + program + `env: {A: "${params.own}"}}}}}`, `{"A":"1"}`},
		"a number, as it is": {`{nodes: {z: {` + program + `env: {A: "${run.n}"}}}}}`, `{"A":"2.50"}`},
		"a part":             {`{nodes: {z: {` + program + `env: {A: "${params.deep.a[1].b}"}}}}}`, `{"A":"true"}`},
		"an object, in one line": {`{nodes: {z: {` + program + `env: {A: "${params.deep}"}}}}}`,
			`{"A":"{\"a\":[1,{\"b\":true}]}"}`},
		"an output": {`{nodes: {a: {service: s}, z: {depends_on: [a], ` + program +
			`env: {A: "${deps.a.out.x}-${deps.a}"}}}}}`, `{"A":"1-{\"out\":{\"x\":1}}"}`},
		"shared": {`{start: a, edges: [{from: a, action: default, to: z}], ` +
			`nodes: {a: {service: s, post: {output_key: o}}, z: {` + program +
			`env: {A: "${shared.o.out.x}"}}}}}`, `{"A":"1"}`},
		"its input": {`{nodes: {z: {inputs: {i: {const: 5}}, ` + program +
			`env: {A: "${input.i}"}}}}}`, `{"A":"5"}`},
		"a text where none is": {`{nodes: {z: {` + program +
			`env: {A: "${params.no:-none} ${params.no:-}."}}}}}`, `{"A":"none ."}`},
		"the text itself": {`{nodes: {z: {` + program +
			`env: {A: "$${HOME} $HOME $$ $${params.day} ${params.day}}"}}}}}`,
			`{"A":"${HOME} $HOME $$ ${params.day} monday}"}`},
		"of a worker's program": {`{nodes: {z: {exec: {type: process, service: w, command: x, ` +
			`env: {A: "${params.day}", B: b}}}}}`, `{"A":"monday","B":"b"}`},
		"of one, in a graph": {`{start: z, nodes: {z: {exec: {type: process, service: w, ` +
			`command: x, env: {A: "${params.day}", B: b}}, route: queue}}}`, `{"A":"monday","B":"b"}`},
		"of a dag's finally": {`{finally: z, nodes: {a: {service: s}, z: {` + program +
			`env: {A: "${params.day}"}}}}}`, `{"A":"monday"}`},
		"of a worker's, at last": {`{finally: z, nodes: {a: {service: s}, z: {exec: {type: ` +
			`process, service: w, command: x, env: {A: "${params.day}"}}}}}`, `{"A":"monday"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tb, envs := filled(t, tt.definition, params, `{"out":{"x":1}}`)
			require.Equal(t, flow.TaskCompleted, tb.state.Status, tb.state.Error)
			var got []byte
			for at, env := range envs {
				if strings.Contains(at, "z") {
					got, _ = json.Marshal(env)
				}
			}
			require.JSONEq(t, tt.env, string(got))
		})
	}
}

func TestEachUnitHasVariablesOfItsItem(t *testing.T) {
	for _, definition := range []string{
		`{nodes: {a: {each: {items: $run.list}, ` + program + `env: {A: "${item.id}"}}}}}`,
		`{nodes: {a: {each: {items: $run.list}, exec: {type: process, service: w, command: x, env: {A: "${item.id}"}}}}}`,
		`{start: a, nodes: {a: {kind: foreach, parallel_mode: concurrent, prep: {input_key: ` +
			`$params.list}, ` + program + `env: {A: "${item.id}"}}}}}`,
	} {
		tb, envs := filled(t, definition, `{"list":[{"id":"x"},{"id":7}]}`, "1")
		require.Equal(t, flow.TaskCompleted, tb.state.Status)
		var all []string
		for _, env := range envs {
			all = append(all, env["A"])
		}
		require.ElementsMatch(t, []string{"x", "7"}, all, definition)
	}
}

// many returns variables with the same value.
func many(n int, value string) (vars []string) {
	for i := range n {
		vars = append(vars, fmt.Sprintf("V%02d: \"%s\"", i, value))
	}
	return vars
}

// An attempt with a missing variable is never dispatched, and a retry cannot succeed.
func TestAnAttemptWithAMissingVariableFails(t *testing.T) {
	for name, tt := range map[string]struct{ definition, params, want string }{
		"nothing there": {`{nodes: {a: {retry: {max_attempts: 3}, ` + program +
			`env: {A: "${params.no}"}}}}}`, `{}`, "env.A: there is no ${params.no}"},
		"null": {`{start: a, nodes: {a: {retry: {max_attempts: 4}, ` + program +
			`env: {A: "${params.no}"}}}}}`, `{"no":null}`, "env.A: there is no ${params.no}"},
		"of a queued job": {`{nodes: {a: {route: queue, exec: {type: process, service: w, ` +
			`command: x, env: {A: "${params.no}"}}}}}`, `{}`, "env.A: there is no ${params.no}"},
		"an output": {`{nodes: {b: {service: s}, a: {depends_on: [b], ` + program +
			`env: {A: "${deps.b.no}"}}}}}`, `{}`, "env.A: there is no ${deps.b.no}"},
		"what no text is": {`{nodes: {a: {` + program + `env: {A: "${params.t}"}}}}}`,
			`{"t":"a\u0000b"}`, "env.A holds a NUL character"},
		"more than all hold": {`{nodes: {a: {` + program + `env: {` + strings.Join(many(50,
			"${params.t}"), ", ") + `}}}}}`, `{"t":"` + strings.Repeat("x", 90_000) + `"}`,
			"env.V11: the variables have more than 1048576 bytes together"},
		"of shared": {`{nodes: {a: {` + program + `env: {` + strings.Join(many(14,
			"${shared.t:-"+strings.Repeat("x", 90_000)+"}"), ", ") + `}}}}}`, `{}`,
			"env.V11: the variables have more than 1048576 bytes together"},
		"more than it holds": {`{nodes: {a: {` + program + `env: {A: "${params.t}"}}}}}`,
			`{"t":"` + strings.Repeat("x", 100_000) + `"}`, "env.A has 100000 bytes, more than the 98304"},
	} {
		t.Run(name, func(t *testing.T) {
			tb, envs := filled(t, tt.definition, tt.params, "1")
			require.Equal(t, flow.TaskFailed, tb.state.Status)
			require.Contains(t, tb.state.Error, tt.want)
			for at := range envs {
				require.Contains(t, at, "b", "only others were given to anybody")
			}
		})
	}
}

func TestUnitsWithCompleteVariablesContinue(t *testing.T) {
	tb, envs := filled(t, `{nodes: {a: {each: {items: $run.list, concurrency: 2, on_error: `+
		`continue}, `+program+`env: {A: "${item.id}"}}}}}`,
		`{"list":[{"no":1},{"no":1},{"id":1},{"no":1},{"id":2}]}`, "1")
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Len(t, envs, 2)
	require.JSONEq(t, `[null,null,1,null,1]`, string(tb.state.Root.Nodes[0].Output))

	tb, envs = filled(t, `{nodes: {a: {each: {items: $run.list, on_error: fail_fast}, `+program+
		`env: {A: "${item.id}"}}}}}`, `{"list":[{"no":1},{"id":1}]}`, "1")
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Empty(t, envs)
}

func TestAnAttemptWithAMissingVariableTakesNoPlace(t *testing.T) {
	tb := keyed(t, `{nodes: {a: {concurrency: {limit: 1}, `+program+`env: {A: "${shared.x}"}}}}}`, `{}`)
	require.Empty(t, tb.jobs)
	require.Empty(t, tb.held)
	require.Empty(t, tb.asks)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
}

// A signal may write to shared at any time, but a redelivered attempt keeps its first values.
func TestAnAttemptKeepsTheValuesOfItsVariables(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "# in YAML\n"+`{nodes: {a: {start_delay: 1s, `+program+`env: {A: "${shared.x}"}}}}}`))
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	tb.tell(flow.Signal{Key: "x", Value: json.RawMessage(`"first"`)})
	tb.wait(1_000)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	require.Equal(t, "first", tb.jobs[at].Exec.Program.Env["A"])
	tb.tell(flow.Signal{Key: "x", Value: json.RawMessage(`null`)})
	job, ok := tb.state.Job(at)
	require.True(t, ok)
	require.Equal(t, "first", job.Exec.Program.Env["A"])
}
