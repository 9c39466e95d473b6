package actors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// handOut starts a task whose only job goes to a waiting poll.
func handOut(t *testing.T, visibility time.Duration, unlisted bool) (*harness, engine.Claimed) {
	const wait = patience + time.Millisecond // no other timer has this duration
	clock := newNoting(wait)
	th := start(t, actors.Config{Visibility: visibility, Host: actors.Host{Clock: clock}})
	version := th.publish(t, queueOf("x"))
	got := make(chan []engine.Claimed, 1)
	go func() {
		claimed, _ := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"x"}, Wait: wait, Unlisted: unlisted})
		got <- claimed
	}()
	<-clock.begun
	require.Empty(t, th.poll(t, 0, 1, "y")) // so the sessions actor has handled the first poll
	id := th.begin(t, version, `{}`)
	claimed := <-got
	require.Len(t, claimed, 1)
	require.Equal(t, 1, th.rows(t, id), "it is claimed in the row it begins in")
	return th, claimed[0]
}

// queued returns the ids of the jobs in the queue of the store.
func (th *harness) queued(t *testing.T) (ids []string) {
	rows, err := th.store.QueueRows(t.Context(), nil, 0, "", 10)
	require.NoError(t, err)
	for _, r := range rows {
		ids = append(ids, r.JobID)
	}
	return ids
}

func TestAJobHandedOutAtItsStartGetsAQueueRowWhenNeeded(t *testing.T) {
	for name, tt := range map[string]struct {
		unlisted bool
		does     func(*testing.T, *harness, engine.Claimed)
		listed   bool
	}{
		"its poller wants it to be there": {false, func(*testing.T, *harness, engine.Claimed) {}, true},
		"nothing is told of it":           {true, func(*testing.T, *harness, engine.Claimed) {}, false},
		"its worker says what it does": {true, func(t *testing.T, th *harness, c engine.Claimed) {
			require.NoError(t, th.Do(t.Context(), c.Job.Task, flow.Note{Address: c.Job.Address, Token: c.Token, Text: "running"}, ""))
		}, true},
		"its claim is prolonged": {true, func(t *testing.T, th *harness, c engine.Claimed) {
			_, err := th.Extend(t.Context(), "w", []string{c.Job.ID()}, c.Token, 2*time.Hour)
			require.NoError(t, err)
		}, true},
		"it is given back, and got by another one": {true, func(t *testing.T, th *harness, c engine.Claimed) {
			require.NoError(t, th.Do(t.Context(), c.Job.Task, flow.GiveBack{Address: c.Job.Address, Token: c.Token}, ""))
			require.Equal(t, []string{c.Job.ID()}, th.queued(t))
			require.Len(t, th.poll(t, patience, 1, "x"), 1)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			th, got := handOut(t, time.Hour, tt.unlisted)
			tt.does(t, th, got)
			var want []string
			if tt.listed {
				want = []string{got.Job.ID()}
			}
			require.Equal(t, want, th.queued(t))
			require.NoError(t, th.Complete(t.Context(), got.Job.ID(), flow.Report{}))
			th.ended(t, got.Job.Task)
			require.Empty(t, th.queued(t))
		})
	}
}

func TestAnUnlistedJobOfALostWorkerGetsAQueueRow(t *testing.T) {
	th, got := handOut(t, 50*time.Millisecond, true)
	again := th.poll(t, patience, 1, "x")
	require.Len(t, again, 1)
	require.Equal(t, got.Job.ID(), again[0].Job.ID())
	require.Equal(t, 1, again[0].Job.Deliveries)
	require.Equal(t, []string{got.Job.ID()}, th.queued(t))
	require.NoError(t, th.Complete(t.Context(), got.Job.ID(), flow.Report{}))
	th.ended(t, got.Job.Task)
	require.Empty(t, th.queued(t))
}

func TestAnUnlistedJobIsLostWithItsWorkerAfterARestart(t *testing.T) {
	th, got := handOut(t, time.Second, true)
	require.Empty(t, th.queued(t))
	th = th.again(t, actors.Config{Visibility: time.Second})
	again := th.poll(t, patience, 1, "x")
	require.Len(t, again, 1)
	require.Equal(t, got.Job.ID(), again[0].Job.ID())
	require.NoError(t, th.Complete(t.Context(), got.Job.ID(), flow.Report{}))
	th.ended(t, got.Job.Task)
	require.Empty(t, th.queued(t))
}
