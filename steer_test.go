package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

const approved = `{"name":"Approved","start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`

func TestAProgramControlsItsTasks(t *testing.T) {
	e, ctx := opened(t), t.Context()
	published, err := e.Apply(ctx, "", []byte(approved))
	require.NoError(t, err)
	require.True(t, published.Created)
	published, err = e.Apply(ctx, "approved", []byte(approved))
	require.NoError(t, err)
	require.False(t, published.Created)
	id, err := e.Start(ctx, "approved", map[string]int{"n": 7}, troupe.WithLabels(map[string]string{"a": "b"}), troupe.WithVersion(1))
	require.NoError(t, err)

	task, err := e.Task(ctx, id)
	require.NoError(t, err)
	require.Equal(t, []any{"approved", "running", "ask", 1}, []any{task.Flow, task.State, task.Node, task.Version})
	require.JSONEq(t, `{"n":7}`, string(task.Params))
	list, err := e.Tasks(ctx, troupe.TaskQuery{Labels: map[string]string{"a": "b"}, States: []string{"running"}})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	waiting, err := e.Waiting(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "ask", waiting.Waits[0].Node)

	require.NoError(t, e.Pause(ctx, id))
	require.ErrorIs(t, e.Pause(ctx, id), troupe.ErrConflict)
	require.NoError(t, e.Resume(ctx, id))
	seen := make(chan string, 100)
	go func() {
		defer close(seen)
		for event, err := range e.Watch(ctx, id, "") {
			if err == nil {
				seen <- event.Type
			}
		}
	}()
	require.Equal(t, "task_created", <-seen)
	require.NoError(t, e.Signal(ctx, id, "ok", true))
	result, err := e.Wait(ctx, id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status)
	last := ""
	for kind := range seen {
		last = kind
	}
	require.Equal(t, "task_ended", last)

	for name, call := range map[string]func() error{
		"pause":  func() error { return e.Pause(ctx, id) },
		"resume": func() error { return e.Resume(ctx, id) },
		"retry":  func() error { return e.Retry(ctx, id) },
	} {
		require.ErrorIs(t, call(), troupe.ErrEnded, name)
		require.ErrorIs(t, call(), troupe.ErrConflict, name)
	}
	events, err := e.Events(ctx, id, "", 500)
	require.NoError(t, err)
	require.Equal(t, "task_ended", events.Items[len(events.Items)-1].Type)
	steps, err := e.Steps(ctx, id, troupe.StepQuery{})
	require.NoError(t, err)
	require.Equal(t, "ask", steps.Items[0].Node)
}

const fan = `{"mode":"dag","nodes":{
	"check":{"route":"direct","each":{"items":"$run.items"}},
	"sum":{"func":"log_result","depends_on":["check"],"prep":{"input_key":"$deps.check"}}}}`

func TestAProgramCompletesAndAppendsUnits(t *testing.T) {
	e, ctx := opened(t), t.Context()
	require.NoError(t, e.Publish(ctx, "fan", []byte(fan)))
	id, err := e.Start(ctx, "fan", map[string]any{"items": []int{1}})
	require.NoError(t, err)
	at := troupe.StepName{Step: "check"}
	added, err := e.Append(ctx, id, troupe.Append{StepName: at, Items: []json.RawMessage{[]byte(`2`)}})
	require.NoError(t, err)
	require.Equal(t, []int{1}, added)
	for unit := range 2 {
		done, err := e.Complete(ctx, id, troupe.Complete{StepName: at, Unit: unit, Output: []byte(`10`)})
		require.NoError(t, err)
		require.True(t, done.Changed)
	}
	result, err := e.Wait(ctx, id)
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":[10,10]}`, string(result.Value))
	units, err := e.Units(ctx, id, troupe.StepQuery{Step: "check"}, 0)
	require.NoError(t, err)
	require.Len(t, units.Items, 2)
}

func TestMissingThingsAreErrorsThatNameThem(t *testing.T) {
	e, ctx := opened(t), t.Context()
	require.NoError(t, e.Publish(ctx, "f", []byte(approved)))
	id, err := e.Start(ctx, "f", nil)
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"task":   func() error { _, err := e.Task(ctx, "nope"); return err },
		"wait":   func() error { _, err := e.Wait(ctx, "nope"); return err },
		"signal": func() error { return e.Signal(ctx, "nope", "k", 1) }, "cancel": func() error { return e.Cancel(ctx, "nope") },
		"retry":       func() error { return e.Retry(ctx, "nope") },
		"fork":        func() error { _, err := e.Fork(ctx, "nope", troupe.Fork{}); return err },
		"flow":        func() error { _, err := e.Flow(ctx, "nope"); return err },
		"start":       func() error { _, err := e.Start(ctx, "nope", nil); return err },
		"version":     func() error { _, err := e.Version(ctx, "f", 77); return err },
		"old version": func() error { _, err := e.Start(ctx, "f", nil, troupe.WithVersion(77)); return err },
		"job":         func() error { _, err := e.Job(ctx, id+".1.0.1.nope"); return err },
		"events":      func() error { _, err := e.Events(ctx, "nope", "", 9); return err },
		"step": func() error {
			_, err := e.Complete(ctx, id, troupe.Complete{StepName: troupe.StepName{Step: "nope"}})
			return err
		},
		"watch": func() error {
			for _, err := range e.Watch(ctx, "nope", "") {
				return err
			}
			return nil
		},
	} {
		err := call()
		require.ErrorIs(t, err, troupe.ErrNotFound, name)
		require.Regexp(t, "nope|77", err.Error(), name)
		require.NotContains(t, err.Error(), "/v1", name)
	}
}

func TestProblemsOfADefinitionHavePlaces(t *testing.T) {
	e := opened(t)
	wrong := []byte("start: a\nnodes:\n  a: {kind: chioce}\n")
	problems, err := e.Validate(t.Context(), wrong)
	require.NoError(t, err)
	require.Equal(t, 3, problems[0].Line)
	var told troupe.Problems
	require.ErrorAs(t, e.Publish(t.Context(), "f", wrong), &told)
	require.Equal(t, problems, told)
}

func TestAnInvalidQueryIsAnError(t *testing.T) {
	e := opened(t)
	_, err := e.Tasks(t.Context(), troupe.TaskQuery{States: []string{"sleepy"}})
	require.ErrorIs(t, err, troupe.ErrInvalid)
	require.NoError(t, e.Publish(t.Context(), "f", []byte(approved)))
	_, err = e.Start(t.Context(), "f", nil, troupe.WithLabels(map[string]string{"a:b": ""}))
	require.ErrorIs(t, err, troupe.ErrInvalid)
	first, err := e.Start(t.Context(), "f", nil, troupe.WithKey("k"))
	require.NoError(t, err)
	again, err := e.Start(t.Context(), "f", nil, troupe.WithKey("k"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = e.Start(t.Context(), "f", map[string]int{"n": 1}, troupe.WithKey("k"))
	require.ErrorIs(t, err, troupe.ErrConflict)
}

func TestAWatchEndsWhenTheEngineIsClosed(t *testing.T) {
	e := opened(t)
	require.NoError(t, e.Publish(t.Context(), "f", []byte(approved)))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	begun, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		for _, err := range e.Watch(context.Background(), id, "") {
			if err != nil {
				ended <- err
				return
			}
			begun <- struct{}{}
		}
		ended <- errors.New("it ended without an error")
	}()
	<-begun
	require.NoError(t, e.Close())
	require.EqualError(t, <-ended, "the engine was closed")
}

func TestADefinitionIsTriedWithoutBeingPublished(t *testing.T) {
	e := opened(t)
	troupe.Handle(e, "twice", func(_ context.Context, in struct{ N int }) (int, error) { return 2 * in.N, nil })
	made, err := e.Try(t.Context(), []byte(
		"nodes: {a: {func: twice, prep: {input_map: {n: $run.n}}}}"),
		troupe.Try{Params: json.RawMessage(`{"n": 21}`)})
	require.NoError(t, err)
	task, err := e.Wait(t.Context(), made.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 42}`, string(task.Value))
	flows, err := e.Flows(t.Context(), troupe.Paging{})
	require.NoError(t, err)
	require.Empty(t, flows.Items)
}

// A pause outlasts a restart of the member, and so does the remaining time of the stopped timeouts.
func TestAPauseStopsTimeoutsAlsoThroughARestart(t *testing.T) {
	for name, store := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			begin := func() *troupe.Engine {
				e, err := troupe.Open(ctx, troupe.Config{Store: store})
				require.NoError(t, err)
				return e
			}
			e := begin()
			_, err := e.Apply(ctx, "ask", []byte(
				`{"start":"ask","timeout_ms":3000,"nodes":{"ask":{"kind":"approval","timeout_ms":2000,"params":{"approval_key":"ok"}}}}`))
			require.NoError(t, err)
			id, err := e.Start(ctx, "ask", nil)
			require.NoError(t, err)
			require.NoError(t, e.Pause(ctx, id))
			paused, err := e.Task(ctx, id)
			require.NoError(t, err)
			until := paused.CreatedAt.Add(3500 * time.Millisecond) // when both would have fired
			require.NoError(t, e.Close())

			e = begin()
			defer func() { require.NoError(t, e.Close()) }()
			require.Eventually(t, func() bool { return time.Now().After(until) }, time.Minute, 10*time.Millisecond)
			task, err := e.Task(ctx, id)
			require.NoError(t, err)
			require.Equal(t, "running", task.State)
			open, err := e.Approvals(ctx, troupe.ApprovalQuery{})
			require.NoError(t, err)
			require.Zero(t, open.Items[0].Deadline)

			resumed := time.Now()
			require.NoError(t, e.Resume(ctx, id))
			open, err = e.Approvals(ctx, troupe.ApprovalQuery{})
			require.NoError(t, err)
			require.Greater(t, open.Items[0].Deadline.Sub(until), -2*time.Second, "it goes on from here")
			result, err := e.Wait(ctx, id)
			require.NoError(t, err)
			require.Contains(t, result.Error, "timeout: not done within 2000 ms")
			ended, err := e.Task(ctx, id)
			require.NoError(t, err)
			left := 2*time.Second - paused.PausedAt.Sub(paused.CreatedAt.Time)
			require.Greater(t, ended.EndedAt.Sub(resumed), left-time.Second, "but for how far the two clocks are apart")
		})
	}
}
