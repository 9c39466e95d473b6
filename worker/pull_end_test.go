package worker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// runUntilLeave runs a worker whose only job ends when leave is closed.
func runUntilLeave(t *testing.T, cfg worker.Config) (begun, leave chan struct{}, cancel func(), ended chan error) {
	w := worker.New(cfg)
	begun, leave = make(chan struct{}), make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		close(begun)
		<-leave
		return "done", ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return begun, leave, cancel, ended
}

func TestJobsAtWorkMayFinish(t *testing.T) {
	e := newEngine(t)
	begun, leave, cancel, ended := runUntilLeave(t, config(e))
	e.queue <- job("1", "s")
	<-begun
	cancel()
	close(leave)
	require.NoError(t, <-ended)
	require.Equal(t, `"done"`, string((<-e.completed).Output))
	require.Empty(t, e.completed)
	require.Nil(t, <-e.next, "it takes no more jobs")
}

func TestJobsThatHaveNotBegunAreGivenBack(t *testing.T) {
	e := newEngine(t)
	e.first("poll", func(w http.ResponseWriter) { // more than requested
		_ = json.NewEncoder(w).Encode(wire.ClaimedJobs{Jobs: []wire.ClaimedJob{job("1", "s"), job("2", "s"), job("3", "s")}})
	})
	cfg := config(e)
	cfg.Concurrency = 1
	w := worker.New(cfg)
	begun, leave := make(chan string, 3), make(chan struct{})
	w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
		begun <- j.ID
		<-leave
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	first := <-begun
	cancel()
	released := (<-e.released).Claims // while the first job is in progress
	close(leave)
	require.NoError(t, <-ended)
	require.Equal(t, first, (<-e.completed).Job)
	require.Len(t, released, 2)
	for _, c := range released {
		require.NotEqual(t, first, c.Job)
		require.Equal(t, "tok-"+c.Job, c.Token)
	}
	require.Empty(t, begun)
	require.Empty(t, e.completed)
}

func TestJobsThatDoNotFinishAreGivenBackWhenTheyHaveStopped(t *testing.T) {
	e := newEngine(t)
	cfg := config(e)
	cfg.Grace = 20 * time.Millisecond
	w := worker.New(cfg)
	begun, leave := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(leave) })
	w.Handle("heeds", func(ctx context.Context, _ worker.Job) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.Handle("does not", func(context.Context, worker.Job) (any, error) {
		begun <- struct{}{}
		<-leave
		return nil, nil
	})
	stop := run(t, w)
	e.queue <- job("1", "heeds")
	e.queue <- job("2", "does not")
	<-begun
	<-begun
	stop()
	require.Empty(t, e.completed)
	require.Equal(t, []wire.HeldJob{{Job: "1", Token: "tok-1"}}, (<-e.released).Claims)
	require.Empty(t, e.released, "a job may be at work once only")
}

func TestAWorkerDeregisters(t *testing.T) {
	e := newEngine(t)
	w := worker.New(config(e))
	w.Handle("s", nil)
	stop := run(t, w)
	<-e.registered
	<-e.beats
	stop()
	require.Equal(t, "w1", <-e.left)
	require.Empty(t, e.left)
}
