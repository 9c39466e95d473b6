package worker_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// soon receives a value within a time that is shorter than the timeouts of requests.
func soon[T any](t *testing.T, what <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-what:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "it does not happen")
	}
	return v
}

func TestAWorkerGoesOnWithTheNextMember(t *testing.T) {
	first, second := newEngine(t), newEngine(t)
	cfg := config(first)
	cfg.Server = first.URL + ", " + second.URL + "/api/"
	cfg.Push, cfg.Pull, cfg.URL = true, true, "http://127.0.0.1:0"
	w := worker.New(cfg)
	begun, end := make(chan struct{}), make(chan struct{})
	w.Handle("s", func(context.Context, worker.Job) (any, error) {
		close(begun)
		<-end
		return "done", nil
	})
	stop := run(t, w)
	soon(t, first.registered)
	soon(t, first.beats)
	j := job("1", "s")
	j.LeaseMS = 900
	first.queue <- j
	soon(t, begun)
	require.Empty(t, second.polls, "one is enough")

	first.CloseClientConnections()
	first.Listener.Close()
	soon(t, second.beats)
	soon(t, second.polls)
	require.Equal(t, []wire.HeldJob{{Job: "1", Token: "tok-1"}}, soon(t, second.prolonged))
	close(end)
	require.Equal(t, "1", soon(t, second.completed).Job)
	stop()
	require.Equal(t, "w1", soon(t, second.left))
}

func TestAMemberThatCannotWorkIsLeftForTheNext(t *testing.T) {
	first, second := newEngine(t), newEngine(t)
	first.first("register", status(503))
	cfg := config(first)
	cfg.Server = first.URL + "," + second.URL
	w := worker.New(cfg)
	w.Handle("s", nil)
	run(t, w)
	soon(t, second.registered)
	soon(t, second.polls)
}

// A frozen member answers nothing, and must not delay the renewal of a claim until it expires.
func TestAHeartbeatWithoutAnAnswerIsFollowedByAnother(t *testing.T) {
	e, thaw := newEngine(t), make(chan struct{})
	t.Cleanup(func() { close(thaw) })
	frozen := func(http.ResponseWriter) { <-thaw }
	cfg := config(e)
	cfg.Heartbeat = time.Hour // of the worker, not of its claims
	cfg.Grace = -1
	w := worker.New(cfg)
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) { <-ctx.Done(); return nil, nil })
	e.first("heartbeat", frozen, frozen)
	run(t, w)
	j := job("1", "s")
	j.LeaseMS = 300
	e.queue <- j
	soon(t, e.prolonged)
	soon(t, e.prolonged)
	e.cancel("1")
}
