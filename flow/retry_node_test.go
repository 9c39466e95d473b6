package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// twoFail is a dag in which a and x fail, and their dependents are skipped.
const twoFail = `{"profile":"ork","nodes":{"a":{"service":"boom"},"b":{"service":"echo","depends_on":["a"]},"n":{"service":"echo","depends_on":["a"],"run_on":"always"},
	"x":{"service":"boom"},"y":{"service":"echo","depends_on":["x"]},"ok":{"service":"echo"}}}`

func statuses(tb *table) map[string]flow.StepStatus {
	all := map[string]flow.StepStatus{}
	for key, v := range tb.stepsOf("") {
		all[key] = v.Status
	}
	return all
}

func TestOneNodeIsRetriedWithItsDependents(t *testing.T) {
	tb := played(t, twoFail, `{}`)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	tb.hands = func(j flow.Job) flow.Report { return flow.Report{Address: j.Address, Output: json.RawMessage("1")} }
	_, err := tb.do(flow.RetryTask{Node: "a"})
	require.NoError(t, err)
	require.Equal(t, flow.TaskRunning, tb.state.Status)
	tb.work()
	require.Equal(t, map[string]flow.StepStatus{"a": flow.StepCompleted, "b": flow.StepCompleted, "n": flow.StepCompleted,
		"x": flow.StepFailed, "y": flow.StepSkipped, "ok": flow.StepCompleted}, statuses(tb))
	require.Equal(t, flow.TaskFailed, tb.state.Status, "x has still failed")
	require.Equal(t, "x: boom", tb.state.Error)
	require.EqualValues(t, 2, tb.rootNode("n").Visit, "it had run with nothing of a")
	require.EqualValues(t, 1, tb.rootNode("ok").Visit)

	_, err = tb.do(flow.RetryTask{Node: "x"})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestOnlyAFailedNodeCanBeRetriedAlone(t *testing.T) {
	tb := played(t, twoFail, `{}`)
	for node, kind := range map[string]flow.ErrorKind{"ok": flow.Conflict, "b": flow.Conflict, "none": flow.NotFound} {
		_, err := tb.do(flow.RetryTask{Node: node})
		require.Equal(t, kind, flow.ErrorKindOf(err), node)
	}
	graph := played(t, `{"start":"a","nodes":{"a":{"service":"boom"}}}`, `{}`)
	_, err := graph.do(flow.RetryTask{Node: "a"})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestACanceledTaskOfOrkIsRetried(t *testing.T) {
	for name, how := range map[string]flow.Cancel{"gently": {Gently: true}, "at once": {}} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t,
				`{"profile":"ork","nodes":{"a":{"service":"echo"},"b":{"service":"echo","depends_on":["a"]}}}`))
			_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
			require.NoError(t, err)
			_, err = tb.do(how)
			require.NoError(t, err)
			tb.work()
			require.Equal(t, flow.TaskCanceled, tb.state.Status)
			_, err = tb.do(flow.RetryTask{})
			require.NoError(t, err)
			tb.work()
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
			require.Equal(t, map[string]flow.StepStatus{"a": flow.StepCompleted, "b": flow.StepCompleted}, statuses(tb))
		})
	}
}
