package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

const untilApproved = `
start: wait
nodes:
  wait: {kind: approval, params: {approval_key: $shared.ok}, post: {output_key: answer}}
`

func (th *harness) begin(t *testing.T, version, params string) string {
	t.Helper()
	id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: json.RawMessage(params)})
	require.NoError(t, err)
	return id
}

func (th *harness) eventuallyEmpty(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return th.Stats().Actors["task"] == 0 }, patience, 5*time.Millisecond)
}

func TestAWaitingTaskLeavesMemoryAndReturnsForASignal(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	th.eventuallyEmpty(t)
	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, ""))
	require.JSONEq(t, `{"ok":true,"answer":true}`, string(th.ended(t, id).State.Root.SharedJSON()))
	th.eventuallyEmpty(t)
}

func TestATimerWakesARestingTask(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond})
	id := th.begin(t, th.publish(t,
		`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":"$params.delay_ms"}}}}`),
		`{"delay_ms":1200}`)
	th.eventuallyEmpty(t)
	view := th.ended(t, id)
	took := view.State.EndedAt - view.State.CreatedAt
	require.GreaterOrEqual(t, took, int64(1200))
	require.Less(t, took, int64(15_000))
}

func TestSignalsAtTheSameTimeAreNeverLost(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 5 * time.Millisecond})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	const n = 50
	errs := make(chan error, n)
	for i := range n {
		go func() {
			errs <- th.Do(t.Context(), id, flow.Signal{Key: fmt.Sprint("k", i), Value: json.RawMessage(`1`)}, "")
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	view, err := th.reader.View(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, view.State.Root.Shared, n)
}

func TestAMemberRecoversTheJobsOfADeadOne(t *testing.T) {
	var calls atomic.Int64
	reached := make(chan struct{}, 10)
	block := carry(func(ctx context.Context, j flow.Job) flow.Report {
		if calls.Add(1) == 1 {
			reached <- struct{}{}
			<-ctx.Done()
		}
		return increment(ctx, j)
	})
	cfg := withFunc(block)
	cfg.Store = newLeaping()
	first := start(t, cfg)
	id := first.begin(t, first.publish(t, chainOfThree), `{"n":1}`)
	<-reached
	first.Kill()
	second := start(t, cfg)
	view := second.ended(t, id)
	require.JSONEq(t, `{"x":4}`, string(view.State.Root.SharedJSON()))
	require.EqualValues(t, 4, calls.Load(), "one attempt was carried out twice, because its carrier died")
}

func TestACrashedStepActorIsRestarted(t *testing.T) {
	var crashes atomic.Int64
	cfg := withFunc(increment)
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "step" && fmt.Sprintf("%T", message) == "*actor.Started" && crashes.Add(1) <= 2 {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	view := th.run(t, th.publish(t, overAList), `{"list":[1,2,3]}`)
	require.JSONEq(t, `{"out":[2,3,4]}`, string(view.State.Root.SharedJSON()))
}

const overAList = `
start: each
nodes:
  each: {kind: foreach, exec_type: local_func, func: inc, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out}}
`

func TestACrashedTaskActorRestartsFromTheStore(t *testing.T) {
	var crashes atomic.Int64
	cfg := withFunc(increment)
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "task" && fmt.Sprintf("%T", message) == "journal.Written" && crashes.Add(1) == 2 {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	view := th.run(t, th.publish(t, chainOfThree), `{"n":1}`)
	require.JSONEq(t, `{"x":4}`, string(view.State.Root.SharedJSON()))
}

func TestAPausedTaskStartsNothingNew(t *testing.T) {
	release := make(chan struct{})
	var calls atomic.Int64
	th := start(t, withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		if calls.Add(1) == 1 {
			<-release
		}
		return increment(ctx, j)
	}))
	id := th.begin(t, th.publish(t, chainOfThree), `{"n":1}`)
	require.Eventually(t, func() bool { return calls.Load() == 1 }, patience, time.Millisecond)
	require.NoError(t, th.Do(t.Context(), id, flow.Pause{}, ""))
	close(release)
	require.Eventually(t, func() bool {
		view, err := th.reader.View(t.Context(), id)
		return err == nil && view.State.Steps == 1
	}, patience, time.Millisecond)
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(th.Do(t.Context(), id, flow.Pause{}, "")))
	require.NoError(t, th.Do(t.Context(), id, flow.Resume{}, ""))
	require.JSONEq(t, `{"x":4}`, string(th.ended(t, id).State.Root.SharedJSON()))
}

func TestCancelWithdrawsWhatIsInFlight(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	th := start(t, withFunc(func(ctx context.Context, _ flow.Job) flow.Report {
		close(begun)
		<-ctx.Done()
		close(stopped)
		return flow.Report{Error: "stopped"}
	}))
	id := th.begin(t, th.publish(t, chainOfThree), `{"n":1}`)
	<-begun // a carrier that has not never would
	require.NoError(t, th.Do(t.Context(), id, flow.Cancel{}, ""))
	<-stopped
	require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
	require.NoError(t, th.Do(t.Context(), id, flow.Cancel{}, ""), "canceling an ended task changes nothing")
}

func TestStopPutsTasksToRestAndTheNextMemberGoesOn(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	cfg := withFunc(increment)
	cfg.Store = store
	first := start(t, cfg)
	id := first.begin(t, first.publish(t, untilApproved), `{}`)
	require.NoError(t, first.Stop(t.Context()))
	second := start(t, cfg)
	require.NoError(t, second.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`"yes"`)}, ""))
	require.Equal(t, flow.TaskCompleted, second.ended(t, id).State.Status)
	require.NoError(t, store.Close())
}

func TestAFencedMemberAnswersWaitingCallers(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var taken atomic.Bool
	writing := make(chan struct{})
	th := start(t, actors.Config{Host: actors.Host{Clock: eager{}}, Store: faulty.Wrap(store, faulty.Hooks{
		Commit: func(string, []persistence.Commit) faulty.Fault {
			return faulty.Fault{Before: func(context.Context) error {
				close(writing)
				return persistence.ErrFenced
			}}
		},
		Call: func(_ context.Context, name string) error {
			if name == "Renew" && taken.Load() {
				return persistence.ErrFenced
			}
			return nil
		},
	})})
	version := th.publish(t, untilApproved)
	answered := make(chan error, 1)
	go func() {
		_, _, err := th.StartTask(context.Background(), engine.NewTask{VersionID: version})
		answered <- err
	}()
	<-writing
	taken.Store(true)
	select {
	case err := <-answered:
		require.Equal(t, flow.Busy, flow.ErrorKindOf(err), "%v", err)
	case <-time.After(patience):
		require.Fail(t, "the start was not answered")
	}
}

func TestWorkContinuesWhenTheStoreIsBack(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	clock := quick{time.Now()}
	back := clock.began.Add(time.Minute)
	th := start(t, actors.Config{Lease: time.Hour, Host: actors.Host{Clock: clock}, Store: faulty.Wrap(store, faulty.Hooks{
		Commit: func(string, []persistence.Commit) faulty.Fault {
			if clock.Now().Before(back) {
				return faulty.Fail()
			}
			return faulty.Fault{}
		},
	})})
	th.insist(t, engine.NewTask{VersionID: th.publish(t, untilApproved), Key: "k"})
}

func TestAnUnknownTaskIsAnError(t *testing.T) {
	th := start(t, actors.Config{})
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(th.Do(t.Context(), "task-none", flow.Cancel{}, "")))
	_, err := th.Await(t.Context(), "task-none")
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(err))
}

func TestAllCallersOfAnUnknownTaskAreAnswered(t *testing.T) {
	th := start(t, actors.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				err := th.Do(ctx, "task-nobody", flow.Cancel{}, "")
				assert.Equal(t, flow.NotFound, flow.ErrorKindOf(err), "%v", err)
			}
		})
	}
	all.Wait()
}

func TestAnIdempotencyKeyStandsForOneTask(t *testing.T) {
	th := start(t, actors.Config{})
	n := engine.NewTask{VersionID: th.publish(t, untilApproved), Key: "order-7", Params: json.RawMessage(`{"a":1}`)}
	type outcome struct {
		id      string
		created bool
		err     error
	}
	outcomes := make(chan outcome, 10)
	for range cap(outcomes) {
		go func() {
			id, created, err := th.StartTask(t.Context(), n)
			outcomes <- outcome{id, created, err}
		}()
	}
	ids, created := map[string]bool{}, 0
	for range cap(outcomes) {
		o := <-outcomes
		require.NoError(t, o.err)
		ids[o.id] = true
		if o.created {
			created++
		}
	}
	require.Len(t, ids, 1)
	require.Equal(t, 1, created)
	n.Params = json.RawMessage(`{"a":2}`)
	_, _, err := th.StartTask(t.Context(), n)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestSmallerLimitsDoNotBlockRunningTasks(t *testing.T) {
	const nested = `{"start":"s","nodes":{"s":{"kind":"subflow","subflow":{"start":"w","nodes":{
		"w":{"kind":"subflow","subflow":{"start":"x","nodes":{"x":{"service":"s","exec_type":"queue"}}}}}}}}}`
	const wide = `{"start":"f","nodes":{"f":{"kind":"foreach","service":"nobody","exec_type":"queue","prep":{"input_key":"$params.list"}}}}`
	cfg := actors.Config{Store: newLeaping()}
	first := start(t, cfg)
	deep := first.begin(t, first.publish(t, nested), `{}`)
	waiting := first.begin(t, first.publish(t, nested), `{}`)
	many := first.begin(t, first.publish(t, wide), `{"list":[1,2,3]}`)
	first.Kill()
	cfg.Limits = flow.Limits{Depth: 1, Units: 1, Steps: 1, Window: 1}
	second := start(t, cfg)
	for _, id := range []string{deep, many} {
		require.NoError(t, second.Do(t.Context(), id, flow.Cancel{}, ""))
		require.Equal(t, flow.TaskCanceled, second.ended(t, id).State.Status)
	}
	jobs, err := second.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"s"}, Max: 9, Wait: patience})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.NoError(t, second.Complete(t.Context(), jobs[0].Job.ID(), flow.Report{Token: jobs[0].Token}))
	require.Equal(t, flow.TaskCompleted, second.ended(t, waiting).State.Status, "what was begun deeper than that goes on")
}
