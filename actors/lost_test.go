package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const oneJob = `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`

// lives starts members one after another on one store. Their jobs never end before the test allows
// it.
type lives struct {
	store  *leaping
	limits flow.Limits
	begun  chan string // tasks whose job was started
	answer bool
}

func newLives(deliveries int) *lives {
	l := &lives{store: newLeaping(), begun: make(chan string, 100)}
	l.limits.Deliveries = deliveries
	return l
}

func (l *lives) start(t *testing.T) *harness {
	t.Helper()
	answer := l.answer
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		if !answer {
			l.begun <- j.Task
			<-ctx.Done()
			return flow.Report{Error: "called off"}
		}
		return flow.Report{}
	})
	cfg.Store, cfg.Limits = l.store, l.limits
	cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1}
	return start(t, cfg)
}

func stopSoon(t *testing.T, th *harness) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.NoError(t, th.Stop(ctx))
}

func TestAStoppingMemberLosesNoJob(t *testing.T) {
	l := newLives(1)
	th := l.start(t)
	id := th.begin(t, th.publish(t, oneJob), `{}`)
	for range 4 {
		<-l.begun
		stopSoon(t, th)
		th = l.start(t)
	}
	<-l.begun
	stopSoon(t, th)
	l.answer = true
	require.Equal(t, flow.TaskCompleted, l.start(t).ended(t, id).State.Status)
}

func TestAJobThatKillsItsMemberIsNotRepeatedForever(t *testing.T) {
	l := newLives(2)
	th := l.start(t)
	id := th.begin(t, th.publish(t, oneJob), `{}`)
	for range 4 { // a job that was returned at most once has no event
		require.Equal(t, id, <-l.begun)
		th.Kill()
		th = l.start(t)
	}
	state := th.ended(t, id).State
	require.Equal(t, flow.TaskFailed, state.Status)
	require.Contains(t, state.Error, "given up after 2 deliveries")
	require.Empty(t, l.begun)
}

func TestAJobThatHadNotStartedIsNotLostWithItsMember(t *testing.T) {
	l := newLives(1)
	th := l.start(t)
	version := th.publish(t, oneJob)
	ids := []string{th.begin(t, version, `{}`), th.begin(t, version, `{}`)}
	for life := range 2 {
		<-l.begun
		th.Kill()
		th = l.start(t)
		for _, id := range ids { // also the task whose job is never started
			require.Eventually(t, func() bool { return th.events(t, id, flow.AttemptRequeued) > life }, patience, time.Millisecond)
		}
	}
	lost := <-l.begun
	th.Kill()
	l.answer = true
	th = l.start(t)
	for _, id := range ids {
		want := map[bool]flow.TaskStatus{true: flow.TaskFailed, false: flow.TaskCompleted}[id == lost]
		require.Equal(t, want, th.ended(t, id).State.Status)
	}
}
