package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// nestedArrays returns a value with the given depth.
func nestedArrays(levels int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

func TestValuesNestedTooDeepAreRefused(t *testing.T) {
	plan := flowtest.Plan(t, "start: a\nnodes: {a: {service: s, exec_type: queue}}")
	deep := json.RawMessage(`{"v":` + string(nestedArrays(1_000)) + `}`)
	_, err := newTable(t, plan).do(flow.Start{Params: deep})
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "params nests arrays and objects deeper than 1000 levels")

	tb := newTable(t, plan)
	_, err = tb.do(flow.Start{Params: json.RawMessage(`{"v":` + string(nestedArrays(999)) + `}`)})
	require.NoError(t, err, "1,000 levels are no trouble")
	_, err = tb.do(flow.Signal{Key: "k", Value: nestedArrays(9_998)})
	require.ErrorContains(t, err, "the signal's value nests arrays and objects deeper than 1000 levels")
	d, err := tb.do(flow.Report{Address: tb.open()[0], Output: nestedArrays(1_001)})
	require.NoError(t, err)
	require.Equal(t, string(flow.AttemptError), d.Events[0].Status)
	require.Contains(t, d.Events[0].Error, "the output nests arrays and objects deeper than 1000 levels")
}

func TestItemsNestedTooDeepAreRefused(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "nodes: {m: {kind: fanout, each: {count: 1}, service: s}}"))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	_, err = tb.do(flow.Append{Address: flow.Address{Node: "m"}, Items: []json.RawMessage{nestedArrays(1_000)}})
	require.ErrorContains(t, err, "the list of items nests arrays and objects deeper than 1000 levels")
}

func TestValuesOfDefinitionsAreNoDeeperThanOthers(t *testing.T) {
	text := `{"start":"a","nodes":{"a":{"service":"s","params":{"v":` + string(nestedArrays(1_000)) + `}}}}`
	_, problems := compile.Text([]byte(text), flow.Limits{})
	require.ErrorContains(t, problems.Err(), "nests arrays and objects deeper than 1000 levels")
}

// TestLoopsThatNestTheirValuesFailAtTheLimit runs loops that add a level to a value each time, for
// each way to build a value.
func TestLoopsThatNestTheirValuesFailAtTheLimit(t *testing.T) {
	for name, node := range map[string]string{
		"input_map": `kind: choice, prep: {input_map: {a: $shared.o}}`,
		"a subflow that waits": `kind: subflow, subflow: {start: w, nodes: {w: {kind: ` +
			`wait_event, params: {signal_key: $shared.o}, post: {output_key: x}}}}`,
		"a subflow's own params": `kind: subflow, prep: {input_key: o}, flow: {nodes: {g: ` +
			`{kind: subflow, subflow: {start: c, nodes: {c: {kind: choice, prep: {input_key: ` +
			`$params.g}, post: {output_key: o}}}}}}}`,
		"a mapped output": `kind: subflow, prep: {input_key: o}, flow: {nodes: {out: {kind: ` +
			`output, inputs: {a: {ref: $run}}}}}`,
		"all of shared":      `kind: choice, prep: {input_key: $shared.}`,
		"waiting for shared": `kind: wait_event, params: {signal_key: $shared.}`,
		"a list of outputs":  `kind: parallel, parallel_services: [echo], prep: {input_key: o}`,
	} {
		t.Run(name, func(t *testing.T) {
			profile := "troupe"
			// other profiles never wait for values that nodes have written
			if strings.Contains(node, "signal_key") {
				profile = "pocketflow"
			}
			tb := newTable(t, flowtest.Plan(t, "profile: "+profile+`
start: begin
on_error: fail
nodes: {begin: {kind: choice, prep: {input_map: {g: x}}, post: {output_key: o}}, a: {post: {output_key: o}, `+node+`}}
edges: [{from: begin, action: default, to: a}, {from: a, action: default, to: a}]`))
			tb.env.Limits = flow.Limits{Levels: 20, Steps: 200}
			_, err := tb.do(flow.Start{})
			require.NoError(t, err)
			require.True(t, tb.drain())
			require.Equal(t, flow.TaskFailed, tb.state.Status)
			require.Contains(t, tb.state.Error, "nests arrays and objects deeper than 20 levels")
		})
	}
}

// TestALoopThatNestsItsInputEndsReadable runs up to the default limit.
func TestALoopThatNestsItsInputEndsReadable(t *testing.T) {
	plan := flowtest.Plan(t,
		`{"start":"a","on_error":"fail","edges":[{"from":"a","action":"default","to":"a"}],"nodes":{"a":{"kind":"choice","prep":{"input_map":{"a":"$shared.o"}},"post":{"output_key":"o"}}}}`)
	s := flow.NewState("task-1", plan)
	var rows [][]byte
	for c := flow.Command(flow.Start{}); c != nil; {
		d, err := flow.Decide(s, c, flow.Env{Now: epoch})
		require.NoError(t, err)
		rows, c = append(rows, flow.AppendEvents(nil, d.Events)), d.More
	}
	require.Contains(t, s.Error, "nests arrays and objects deeper than 1000 levels")
	require.Equal(t, 1_001, s.Steps)
	folded := flow.NewState("task-1", plan)
	require.NoError(t, flow.Fold(folded, rows...))
	again, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(folded).Bytes(), plan)
	require.True(t, ok)
	sameState(t, s, again)
}

// checkLevels checks that no value of a task exceeds the maximum depth. The input of a compensation
// wraps values of a step and is not stored, so it may have an additional level.
func (tb *table) checkLevels() {
	levels := tb.env.Limits.OrDefault().Levels
	eachValue(tb.state, func(where string, v json.RawMessage) {
		most := levels
		if strings.HasPrefix(where, "undo") {
			most += 2
		}
		require.False(tb.t, expr.Deeper(v, most), "%s is nested deeper than %d: %s", where, levels, v)
	})
}

// eachValue calls visit for all values of a state.
func eachValue(s *flow.State, visit func(where string, v json.RawMessage)) {
	visit("params", s.Params)
	for _, u := range s.Undoables {
		visit("undo input", u.Input)
		visit("undo items", u.Items)
		visit("undo output", u.Output)
	}
	if s.Root != nil {
		eachValueIn(s.Root, visit)
	}
	if s.Closing != nil {
		eachValueIn(s.Closing.Scope, visit)
	}
}

func eachValueIn(sc *flow.Scope, visit func(where string, v json.RawMessage)) {
	for key, v := range sc.Shared {
		visit("shared "+key, v)
	}
	if sc.Function != nil {
		visit("input", sc.Function.NextInput)
	}
	for i := range sc.Nodes {
		visit("output of a node", sc.Nodes[i].Output)
	}
	for _, st := range sc.Active() {
		visit("input of "+st.Key, st.Input)
		visit("params of "+st.Key, st.Params)
		for i := range st.Units {
			visit("output of "+st.Key, st.Units[i].Output)
		}
		for _, v := range st.Extra {
			visit("item of "+st.Key, v)
		}
		if st.Child != nil {
			eachValueIn(st.Child, visit)
		}
	}
}
