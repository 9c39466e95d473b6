package actors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// expiring has units that time out at the same time: the first one does not end the step, the last
// one does.
const expiring = `
start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: f, parallel_mode: concurrent, timeout_ms: 50, prep: {input_key: $params.list}}
`

func TestAWithdrawalInTheMailboxOfAnEndedStepIsNotLost(t *testing.T) {
	var hung atomic.Int64
	var committing atomic.Bool
	blocked, land, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		if j.Unit == 0 {
			hung.Add(1)
			<-ctx.Done()
			hung.Add(-1)
			return flow.Report{Error: "called off"}
		}
		<-land
		return flow.Report{}
	})
	cfg.Store = faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !committing.Swap(true) { // the end of the first unit
			close(land)
			<-blocked
		}
		return faulty.Fault{}
	}})
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "step" && fmt.Sprintf("%T", message) == "actors.collectReports" {
			close(blocked)
			<-ended
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, expiring), listOf(2))
	<-blocked
	require.Equal(t, flow.TaskFailed, th.ended(t, id).State.Status)
	close(ended)
	require.Eventually(t, func() bool { return hung.Load() == 0 }, patience, time.Millisecond)
}
