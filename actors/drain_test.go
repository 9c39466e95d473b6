package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestAGentleCancelDropsQueuedJobsAndAwaitsRunningOnes(t *testing.T) {
	begun, release := make(chan int, 3), make(chan struct{})
	cfg := withFunc(func(_ context.Context, j flow.Job) flow.Report {
		begun <- j.Unit
		<-release
		return flow.Report{Output: []byte(`1`)}
	})
	cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, `
start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: f, parallel_mode: concurrent, prep: {input_key: $params.list}}
`), listOf(3))
	first := <-begun
	require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{Gently: true}))
	require.Eventually(t, func() bool {
		view, err := th.reader.View(t.Context(), id)
		require.NoError(t, err)
		canceled := 0
		for _, u := range view.State.Root.Step.Units {
			if u.Status == flow.UnitCanceled {
				canceled++
			}
		}
		return canceled == 2
	}, patience, time.Millisecond, "what waited in line is canceled")
	view, err := th.reader.View(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.UnitDispatched, view.State.Root.Step.Units[first].Status, "what runs goes on")
	close(release)
	require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
	require.Empty(t, begun, "no other unit has begun")
}
