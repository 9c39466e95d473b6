package actors_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

// brokenAtFirst fails the first tries and then adds one.
func brokenAtFirst(tries int64) carry {
	var calls atomic.Int64
	return func(ctx context.Context, j flow.Job) flow.Report {
		if calls.Add(1) <= tries {
			return flow.Report{Error: "broken"}
		}
		return increment(ctx, j)
	}
}

const graphOfOne = `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"inc","prep":{"input_key":"$params.n"},"post":{"output_key":"x"}}}}`

func TestARetriedTaskContinuesToItsEnd(t *testing.T) {
	th := start(t, withFunc(brokenAtFirst(1)))
	view := th.run(t, th.publish(t, graphOfOne), `{"n":1}`)
	require.Equal(t, flow.TaskFailed, view.State.Status)
	th.eventuallyEmpty(t)
	require.NoError(t, th.RetryTask(t.Context(), view.ID, "again"))
	require.NoError(t, th.RetryTask(t.Context(), view.ID, "again"), "the same request is answered the same")
	view = th.ended(t, view.ID)
	require.Equal(t, flow.TaskCompleted, view.State.Status)
	require.JSONEq(t, `{"x":2}`, string(view.State.Root.SharedJSON()))
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(th.RetryTask(t.Context(), view.ID, "")))
}

func TestARetriedTaskIsUnfinishedInTheStoreUntilItEndsAgain(t *testing.T) {
	release := make(chan struct{})
	broken := brokenAtFirst(1)
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		r := broken(ctx, j)
		if r.Error == "" {
			<-release
		}
		return r
	})
	cfg.IdleAfter = 20 * time.Millisecond
	th := start(t, cfg)
	id := th.run(t, th.publish(t, graphOfOne), `{"n":1}`).ID
	require.NoError(t, th.RetryTask(t.Context(), id, ""))
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "running", row.Status)
	require.Zero(t, row.EndedAt)
	n, err := th.store.DeleteEnded(t.Context(), time.Now().Add(time.Hour).UnixMilli(), 10)
	require.NoError(t, err)
	require.Zero(t, n, "retention leaves it alone")

	var seen []flow.EventType
	watched := make(chan error, 1)
	go func() {
		for row, err := range th.Watch(t.Context(), id, 0) {
			if err != nil {
				watched <- err
				return
			}
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				watched <- err
				return
			}
			for _, e := range events {
				seen = append(seen, e.Type)
			}
		}
		watched <- nil
	}()
	ended := make(chan flow.TaskStatus, 1)
	go func() {
		status, _ := th.Await(t.Context(), id)
		ended <- status
	}()
	close(release)
	require.Equal(t, flow.TaskCompleted, <-ended)
	require.NoError(t, <-watched)
	require.Contains(t, seen, flow.TaskRetried)
	require.Equal(t, flow.TaskEnded, seen[len(seen)-1], "who watches sees the second end")
}

func TestARetriedTaskThatFailsAtOnceHasEnded(t *testing.T) {
	th := start(t, withFunc(increment))
	id := th.run(t, th.publish(t,
		`{"mode":"dag","nodes":{"a":{"func":"inc","exec_type":"local_func","each":{"items":"$run.no"}}}}`),
		`{"no":7}`).ID
	for range 3 {
		require.NoError(t, th.RetryTask(t.Context(), id, ""))
		view := th.ended(t, id)
		require.Equal(t, flow.TaskFailed, view.State.Status)
		require.Equal(t, view.State.EndedAt, view.EndedAt)
	}
}

const workList = `
mode: dag
nodes:
  list: {kind: fanout, route: direct, each: {items: $run.items}}
`

func TestARepeatedAppendReturnsTheSameIndexes(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var lose atomic.Bool
	th := start(t, actors.Config{Store: faulty.Wrap(store, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
		if lose.Swap(false) {
			return faulty.Fault{After: func(context.Context) error { return faulty.ErrLost }}
		}
		return faulty.Fault{}
	}})})
	id := th.begin(t, th.publish(t, workList), `{"items":["a"]}`)
	at := flow.Address{Node: "list"}
	more := []json.RawMessage{json.RawMessage(`"b"`), json.RawMessage(`"c"`)}
	lose.Store(true)
	first, err := th.Append(t.Context(), id, at, more, "direct", "one")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, first, "also when the store's answer gets lost")
	second, err := th.Append(t.Context(), id, at, more[:1], "", "")
	require.NoError(t, err)
	require.Equal(t, []int{3}, second)
	again, err := th.Append(t.Context(), id, at, more, "", "one")
	require.NoError(t, err)
	require.Equal(t, first, again)
	for unit := range 4 {
		at.Unit = unit
		changed, err := th.CompleteDirect(t.Context(), id, at, json.RawMessage(`1`))
		require.NoError(t, err)
		require.True(t, changed)
	}
	require.JSONEq(t, `{"list":[1,1,1,1]}`, string(th.ended(t, id).State.Result()))
	changed, err := th.CompleteDirect(t.Context(), id, at, json.RawMessage(`2`))
	require.NoError(t, err)
	require.False(t, changed, "a second time changes nothing")
	_, err = th.Append(t.Context(), id, flow.Address{Node: "list"}, more, "", "")
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestADirectUnitThatFailsIsNotRetried(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.begin(t, th.publish(t, `{"mode":"dag","nodes":{"sign":{"route":"direct","retry":{"max_attempts":5,"delay":"1h"}}}}`), `{}`)
	_, err := th.FailDirect(t.Context(), id, flow.Address{Node: "sign"}, "nobody signs this")
	require.NoError(t, err)
	view := th.ended(t, id)
	require.Equal(t, flow.TaskFailed, view.State.Status)
	require.Contains(t, view.State.Error, "nobody signs this")
}
