package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsUnderWayIsNamedIfItHasAName(t *testing.T) {
	for node, want := range map[string]string{
		"{service: s}":                                   "a http job of service s is being carried out",
		"{exec_type: local_func, func: mul}":             "a local_func job of service mul is being carried out",
		"{exec_type: local_script, script: {code: 'x'}}": "a local_script job is being carried out",
	} {
		tb := newTable(t, planOf(t, "start: a\nnodes: {a: "+node+"}"))
		_, err := tb.do(Start{})
		require.NoError(t, err)
		require.Equal(t, want, Waiting(tb.state)[0].Text)
	}
}

func TestATaskThatEndedIsNotPausedAnyLonger(t *testing.T) {
	for node, status := range map[string]TaskStatus{
		"{kind: approval, params: {approval_key: $shared.go}}": TaskCompleted,
		"{kind: timer, params: {delay_ms: 9000}}":              TaskCanceled,
	} {
		tb := newTable(t, planOf(t, "start: a\nnodes: {a: "+node+"}"))
		for _, c := range []Command{Start{}, Pause{}, Signal{Key: "go", Value: []byte("1")}} {
			_, err := tb.do(c)
			require.NoError(t, err)
		}
		if status == TaskCanceled {
			require.True(t, tb.state.Paused())
			_, err := tb.do(Cancel{})
			require.NoError(t, err)
		}
		require.Equal(t, status, tb.state.Status)
		require.False(t, tb.state.Paused())
		_, err := tb.do(Resume{})
		require.ErrorContains(t, err, "the task has ended")
	}
}
