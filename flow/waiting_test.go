package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/flowtest"
)

func TestWhatIsUnderWayIsNamedIfItHasAName(t *testing.T) {
	for node, want := range map[string]string{
		"{service: s}":                                   "a http job of service s is being carried out",
		"{exec_type: local_func, func: mul}":             "a local_func job of service mul is being carried out",
		"{exec_type: local_script, script: {code: 'x'}}": "a local_script job is being carried out",
	} {
		tb := newTable(t, flowtest.Plan(t, "start: a\nnodes: {a: "+node+"}"))
		_, err := tb.do(flow.Start{})
		require.NoError(t, err)
		require.Equal(t, want, flow.Waiting(tb.state)[0].Text)
	}
}

func TestATaskThatEndedIsNotPausedAnyLonger(t *testing.T) {
	for node, status := range map[string]flow.TaskStatus{
		"{kind: approval, params: {approval_key: $shared.go}}": flow.TaskCompleted,
		"{kind: timer, params: {delay_ms: 9000}}":              flow.TaskCanceled,
	} {
		tb := newTable(t, flowtest.Plan(t, "start: a\nnodes: {a: "+node+"}"))
		for _, c := range []flow.Command{flow.Start{}, flow.Pause{}, flow.Signal{Key: "go", Value: []byte("1")}} {
			_, err := tb.do(c)
			require.NoError(t, err)
		}
		if status == flow.TaskCanceled {
			require.True(t, tb.state.Paused())
			_, err := tb.do(flow.Cancel{})
			require.NoError(t, err)
		}
		require.Equal(t, status, tb.state.Status)
		require.False(t, tb.state.Paused())
		_, err := tb.do(flow.Resume{})
		require.ErrorContains(t, err, "the task has ended")
	}
}
