package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestAnOutputOfAnotherTypeFailsItsAttempt(t *testing.T) {
	tb := played(t,
		`{"profile":"ork","nodes":{"a":{"service":"echo","input":{"id":1,"tags":["x"]},"output_type":{"type":"object","fields":{"id":"text","tags":["text"]}}}}}`,
		`{}`)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Equal(t, "the output does not fit output_type: output.id: is 1, text was declared", tb.rootNode("a").Rare().Error)

	tb = played(t, `{"profile":"ork","nodes":{"a":{"service":"list","each":{"count":2},"output_type":["any"]}}}`, `{}`)
	require.Equal(t, flow.TaskCompleted, tb.state.Status, "each unit has the type")
}

func TestAnAttemptWithAnOutputOfAnotherTypeIsRetried(t *testing.T) {
	tb := played(t,
		`{"profile":"ork","nodes":{"a":{"service":"third","input":{"x":1},"output_type":"object","retry":{"max_attempts":3}}}}`,
		`{}`)
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestANodeIsCalledByItsNameInMergedInputs(t *testing.T) {
	tb := played(t,
		`{"profile":"ork","nodes":{"a_b":{"name":"a-b","service":"echo","input":{"x":1}},"c":{"service":"echo","depends_on":["a_b"],"inputs":{"v":{"ref":"$deps.a_b.x"}}},
		"d":{"service":"echo","depends_on":["a_b"]}}}`, `{}`)
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.JSONEq(t, `{"v":1}`, string(tb.rootNode("c").Output), "references know it by its key")
	require.JSONEq(t, `{"a-b":{"x":1}}`, string(tb.rootNode("d").Output))
	require.Equal(t, "a-b", tb.state.Root.Plan.Nodes["a_b"].Called())
}
