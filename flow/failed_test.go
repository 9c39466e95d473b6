package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestTheErrorOfATaskNamesTheNodeThatFailedByItsPath(t *testing.T) {
	for definition, want := range map[string]string{
		`{start: a, on_error: fail, nodes: {a: {service: boom}}}`: "a: boom",
		`{start: s, on_error: fail, nodes: {s: {kind: subflow, subflow: {start: b, nodes: {b: ` +
			`{service: boom}}}}}}`: "s/b: boom",
		`{mode: dag, nodes: {s: {kind: subflow, flow: {mode: dag, nodes: {b: {service: boom}}}}}}`: "s/b: boom",
		`{start: s, on_error: fail, nodes: {s: {kind: subflow, flow: {mode: dag, nodes: {t: ` +
			`{kind: branch, flow: {start: b, nodes: {b: {service: boom}}}}}}}}}`: "s/t/b: boom",
		`{start: s, on_error: fail, nodes: {s: {kind: subflow, timeout_ms: 5, subflow: {start: ` +
			`b, nodes: {b: {kind: wait_event, params: {signal_key: never}}}}}}}`: "s: timeout: not done within 5 ms",
		`{start: s, on_error: fail, nodes: {s: {kind: subflow, subflow: {start: b, nodes: {b: ` +
			`{kind: foreach, service: boom, prep: {input_key: $params.list}}}}}}}`: `s/b: foreach error: {"0":"boom"}`,
	} {
		tb := newTable(t, planOf(t, definition))
		tb.hands = carryOut
		_, err := tb.do(flow.Start{Version: "v1", Params: json.RawMessage(`{"list":[1]}`)})
		require.NoError(t, err)
		require.True(t, tb.drain(), definition)
		require.Equal(t, flow.TaskFailed, tb.state.Status, definition)
		require.Equal(t, want, tb.state.Error, definition)
	}
}
