package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestAnAppendedItemIsOneValue(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "nodes: {f: {route: direct, each: {count: 1}}}"))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	at := flow.Address{Node: "f", Visit: 1}
	for _, bad := range []string{"1,2", "]", "{", "1]  ,[2"} {
		_, err = tb.do(flow.Append{Address: at, Items: []json.RawMessage{json.RawMessage("0"), json.RawMessage(bad)}})
		require.EqualError(t, err, "items[1] is not valid JSON")
	}
	_, err = tb.do(flow.Append{Address: at, Items: []json.RawMessage{nil, json.RawMessage(` [1, 2]`)}})
	require.NoError(t, err)
	require.Len(t, tb.direct(), 3)
}

func TestGraphStepsRejectAppendedItems(t *testing.T) {
	for where, tt := range map[string]struct {
		definition string
		at         flow.Address
	}{
		"at the root": {"start: f\nnodes: {f: {kind: foreach, exec_type: queue, service: s, " +
			"prep: {input_key: $params.list}}}", flow.Address{Node: "f", Visit: 1}},
		"in a branch": {"nodes: {b: {kind: branch, flow: {start: f, nodes: {f: {kind: foreach, " +
			"exec_type: queue, service: s, prep: {input_key: $params.list}}}}}}",
			flow.Address{Scope: "b#1", Node: "f", Visit: 1}},
	} {
		t.Run(where, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, tt.definition))
			_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list":[1,2]}`)})
			require.NoError(t, err)
			_, err = tb.do(flow.Append{Address: tt.at, Items: []json.RawMessage{json.RawMessage("3")}})
			require.EqualError(t, err, `step "f" is a foreach in a flow of graph mode, which takes no further items: `+
				"start another task for them, or write the flow in dag mode with a fanout")
			tt.at.Node = "nobody"
			_, err = tb.do(flow.Append{Address: tt.at})
			require.EqualError(t, err, `the task has no step "nobody"`)
		})
	}
}
