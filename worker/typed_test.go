package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

type count struct {
	N int `json:"n"`
}

func TestAFunctionWithTypesCarriesOutJobs(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	got := make(chan worker.Job, 1)
	worker.Handle(w, "double", func(ctx context.Context, in count) (count, error) {
		got <- worker.JobFrom(ctx)
		return count{2 * in.N}, nil
	})
	run(t, w)
	e.queue <- job("1", "double")
	require.Equal(t, "t", (<-got).Task)
	require.JSONEq(t, `{"n":2}`, string((<-e.completed).Output))

	wrong := job("2", "double")
	wrong.Input = json.RawMessage(`{"n":"two"}`)
	e.queue <- wrong
	done := <-e.completed
	require.Equal(t, "function double, node sub/x: field n of its input is a text, the function takes a whole number (int)", done.Error)
	require.True(t, done.Fatal)
}

func TestAFunctionWithTypesIsRegisteredOnce(t *testing.T) {
	double := func(_ context.Context, in count) (count, error) { return count{2 * in.N}, nil }
	w := worker.New(worker.Config{})
	worker.Handle(w, "double", double)
	require.PanicsWithValue(t,
		`worker: the function "double": there is a function of that name already`,
		func() { worker.Handle(w, "double", double) })
	require.PanicsWithValue(t, `worker: the function "f": its output cannot be written as JSON: it is a chan int`, func() {
		worker.Handle(w, "f", func(context.Context, int) (chan int, error) { return nil, nil })
	})
}

func TestNumbersAreReportedWithEveryResult(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	w.Handle("s", func(ctx context.Context, j worker.Job) (any, error) {
		worker.Count(ctx, "rows", 2, nil)
		if j.ID == "2" {
			return nil, errors.New("no")
		}
		return nil, nil
	})
	run(t, w)
	for _, id := range []string{"1", "2"} {
		e.queue <- job(id, "s")
		require.JSONEq(t, `[{"name":"rows","count":1,"sum":2,"last":2}]`, string((<-e.completed).Metrics))
	}
}

func TestProgressOfAHandlerIsSent(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	leave := make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		worker.Progress(ctx, "half of it")
		<-leave
		return nil, nil
	})
	run(t, w)
	e.queue <- job("1", "s")
	require.Equal(t, wire.HeldJob{Job: "1", Token: "tok-1", StatusText: "half of it"}, <-e.notes)
	close(leave)
	<-e.completed
}
