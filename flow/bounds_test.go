package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// textOfBytes returns a JSON text of the given size.
func textOfBytes(bytes int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`)
}

func TestOutputsOfAStepAreBoundedTogether(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "start: a\nnodes: {a: {kind: parallel, "+
		"parallel_services: [s, s, s], post: {output_key: o}, failure_strategy: continue}}"))
	tb.env.Limits = flow.Limits{Shared: 1_000}
	tb.hands = func(j flow.Job) flow.Report { return flow.Report{Address: j.Address, Output: textOfBytes(400)} }
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	d := tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	var errors []string
	for _, e := range d.Events {
		if e.Type == flow.AttemptEnded {
			errors = append(errors, e.Error)
		}
	}
	require.Len(t, errors, 3)
	require.Equal(t, []string{"", ""}, errors[:2])
	require.Contains(t, errors[2], "the outputs of the step's units would have 1200 bytes together, more than the limit of 1000")
	require.Len(t, string(tb.state.Result()), len(`{"o":[,,null]}`)+800)
}

func TestStepsCannotFillSharedWithoutEnd(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
start: a
on_error: fail
nodes: {a: {service: s, post: {output_key: o}}, b: {service: s, post: {output_key: o}}, c: {service: s, post: {output_map: {p: v}}}, d: {kind: choice, prep: {input_key: o}, post: {output_key: q}}}
edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}, {from: c, action: default, to: d}]`))
	tb.env.Limits = flow.Limits{Shared: 1_000}
	tb.hands = func(j flow.Job) flow.Report {
		return flow.Report{Address: j.Address, Output: json.RawMessage(`{"v":` + string(textOfBytes(400)) + `}`)}
	}
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, "d", tb.state.Root.FailedAt, "what replaces a value, or takes a part of one, needs no more room")
	require.Equal(t, "d: shared would have 1215 bytes, more than the limit of 1000; keep large "+
		"data elsewhere and pass a reference", tb.state.Error)
}

// TestResultsThatDoubleAreBounded repeatedly copies the input of a subflow into two keys of its
// shared.
func TestResultsThatDoubleAreBounded(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `
start: begin
on_error: fail
nodes:
  begin: {kind: choice, prep: {input_map: {g: x}}, post: {output_key: o}}
  a:
    kind: subflow
    prep: {input_key: o}
    post: {output_key: o}
    flow:
      nodes:
        g:
          kind: subflow
          subflow:
            start: b
            nodes:
              b: {kind: choice, prep: {input_key: $params.g}, post: {output_key: p}}
              c: {kind: choice, prep: {input_key: $params.g}, post: {output_key: q}}
            edges: [{from: b, action: default, to: c}]
edges: [{from: begin, action: default, to: a}, {from: a, action: default, to: a}]`))
	tb.env.Limits = flow.Limits{Shared: 1_000, Steps: 1_000}
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Contains(t, tb.state.Error, "more than the limit of 1000")
	require.LessOrEqual(t, len(flow.EncodeSnapshot(tb.state).Bytes()), 4_000)
}
