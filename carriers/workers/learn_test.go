package workers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shared does not refresh by itself during a test.
var shared = workers.Options{Learn: time.Hour}

func TestAWorkerThatRegisteredWithAnotherMemberIsCalled(t *testing.T) {
	store := newStore(t)
	here, there := open(t, store, shared), open(t, store, shared)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) }))
	defer server.Close()
	w := persistence.Worker{ID: "w", URL: server.URL, Services: []string{"s"}, Labels: []string{"b", "a"}}
	require.NoError(t, there.Register(t.Context(), w))
	require.Empty(t, here.Carry(t.Context(), job("s")).Error)
	require.Equal(t, []string{"w"}, ids(list(t, here)))
	require.Equal(t, "no worker for service other", open(t, store, workers.Options{}).Carry(t.Context(), job("other")).Error)
}

func TestAWorkerMayUseAnyMember(t *testing.T) {
	store := newStore(t)
	here, there := open(t, store, shared), open(t, store, shared)
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}))
	require.NoError(t, here.Heartbeat(t.Context(), "w", 1))
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(here.Heartbeat(t.Context(), "nobody", 1)))
	require.NoError(t, here.Deregister(t.Context(), "w"))
}

func TestHeartbeatsAtOtherMembersAreRead(t *testing.T) {
	var c clock
	c.Store(1000)
	store := newStore(t)
	here := open(t, store, workers.Options{Now: c.Load, Learn: time.Millisecond})
	there := open(t, store, workers.Options{Now: c.Load})
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}))
	known := func(cond func([]persistence.Worker) bool) {
		require.Eventually(t, func() bool { return cond(list(t, here)) }, patience, time.Millisecond)
	}
	known(func(l []persistence.Worker) bool { return len(l) == 1 })
	c.pass(time.Minute)
	require.NoError(t, there.Heartbeat(t.Context(), "w", 7))
	there.Polled("w")
	require.NoError(t, there.Close(context.Background()))
	known(func(l []persistence.Worker) bool { return l[0].LastHeartbeat == 61_000 && l[0].Load == 7 })
	require.Equal(t, flow.Signs{Heard: 61_000, Joined: 1000, Polled: 60_000}, here.Signs("w"),
		"a poll counts a second earlier: clocks differ")
	_, err := store.DeleteWorkers(t.Context(), c.Load()+1)
	require.NoError(t, err)
	known(func(l []persistence.Worker) bool { return len(l) == 0 })
}

func TestAnUnknownWorkerHeardByOthersIsReadFromTheStore(t *testing.T) {
	store := newStore(t)
	here := open(t, store, shared)
	there := open(t, store, workers.Options{Beat: func(_ context.Context, b persistence.Heartbeat, _ bool) { here.HearBeat(b) }})
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}), "here it is not told")
	require.NoError(t, there.Heartbeat(t.Context(), "w", 7))
	require.Eventually(t, func() bool { return here.Signs("w").Heard > 0 }, patience, time.Millisecond)
}

func TestAnnouncedWorkersAreKnownAtOnce(t *testing.T) {
	var c clock
	c.Store(1000)
	store, options := newStore(t), workers.Options{Learn: time.Hour, Now: c.Load}
	here := open(t, store, options)
	options.Tell = func(_ context.Context, w persistence.Worker, gone bool) { here.Hear(w, gone) }
	options.Beat = func(_ context.Context, b persistence.Heartbeat, _ bool) { here.HearBeat(b) }
	there := open(t, store, options)
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue",
		Type: "async", Services: []string{"s"}, Labels: []string{"b", "a"}, Secret: "x"}))
	require.Equal(t, list(t, there), list(t, here))
	require.NoError(t, there.Heartbeat(t.Context(), "w", 7))
	require.Equal(t, 7, list(t, here)[0].Load, "in the same millisecond, too")
	c.pass(time.Second)
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async", Services: []string{"t"}}))
	require.Equal(t, list(t, there), list(t, here))
	require.NoError(t, there.Deregister(t.Context(), "w"))
	require.Empty(t, list(t, here))
}

func TestALateDeregistrationDoesNotRemoveANewerRegistration(t *testing.T) {
	var c clock
	c.Store(1000)
	here := open(t, newStore(t), workers.Options{Learn: time.Hour, Now: c.Load})
	w := persistence.Worker{ID: "w", URL: "queue", Type: "async"}
	require.NoError(t, here.Register(t.Context(), w))
	w.JoinedAt = 999
	here.Hear(w, true)
	require.Len(t, list(t, here), 1)
	w.JoinedAt = 1000
	here.Hear(w, true)
	require.Empty(t, list(t, here))
}

func TestALateAnnouncementDoesNotRestoreARemovedWorker(t *testing.T) {
	w := persistence.Worker{ID: "w", URL: "queue", Type: "async", JoinedAt: 1000}
	for name, went := range map[string]func(*workers.Registry){
		"when it went here": func(r *workers.Registry) {
			require.NoError(t, r.Register(t.Context(), w))
			require.NoError(t, r.Deregister(t.Context(), "w"))
		},
		"when it went elsewhere": func(r *workers.Registry) { r.Hear(w, true) },
		"when it went elsewhere and others did as well": func(r *workers.Registry) {
			r.Hear(w,
				true)
			r.Hear(persistence.Worker{ID: "v"}, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock
			c.Store(1000)
			r := open(t, newStore(t), workers.Options{Learn: time.Hour, Now: c.Load})
			went(r)
			c.pass(5 * time.Second)
			r.Hear(w, false)
			require.Empty(t, list(t, r))
			again := w
			again.JoinedAt = c.Load()
			r.Hear(again, false)
			require.Len(t, list(t, r), 1)
		})
	}
}

func TestALateHeartbeatDoesNotAffectADepartedOrNewerWorker(t *testing.T) {
	var c clock
	c.Store(1000)
	r := open(t, newStore(t), workers.Options{Learn: time.Hour, Now: c.Load})
	w := persistence.Worker{ID: "w", URL: "queue", Type: "async"}
	require.NoError(t, r.Register(t.Context(), w))
	require.NoError(t, r.Deregister(t.Context(), "w"))
	late := persistence.Heartbeat{ID: "w", Load: 3, At: 1000}
	r.HearBeat(late)
	require.Empty(t, list(t, r))
	c.pass(time.Second)
	require.NoError(t, r.Register(t.Context(), w))
	r.HearBeat(late)
	require.Equal(t, 0, list(t, r)[0].Load)
}

func TestAHeartbeatWaitsForItsAnnouncementOnlyIfTheWorkerWasGone(t *testing.T) {
	var c clock
	c.Store(1000)
	told, over := make(chan struct{}, 1), make(chan struct{})
	defer close(over)
	r := open(t, newStore(t), workers.Options{Learn: time.Hour, OfflineTTL: 15 * time.Second,
		Now: c.Load, Beat: func(_ context.Context, _ persistence.Heartbeat, again bool) {
			if again {
				told <- struct{}{}
				<-over
			}
		}})
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}))
	for range 3 {
		c.pass(15 * time.Second)
		require.NoError(t, r.Heartbeat(t.Context(), "w", 1))
	}
	require.Empty(t, told)
	c.pass(15*time.Second + time.Millisecond)
	go func() { _ = r.Heartbeat(context.Background(), "w", 1) }()
	<-told
	require.NoError(t, r.Heartbeat(t.Context(), "w", 1), "it has been heard meanwhile")
}

func TestSecretsAreSentWithRegistrationsOnly(t *testing.T) {
	var told []persistence.Worker
	r := open(t, newStore(t), workers.Options{Tell: func(_ context.Context, w persistence.Worker, _ bool) { told = append(told, w) }})
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w", URL: "http://127.0.0.1:1", Secret: "x"}))
	require.NoError(t, r.Deregister(t.Context(), "w"))
	require.Len(t, told, 2)
	require.Equal(t, []string{"x", ""}, []string{told[0].Secret, told[1].Secret})
}

func TestASlowAnnouncementDoesNotDelayOtherRegistrations(t *testing.T) {
	const many = 65 // some of them share a lock
	told, over := make(chan string, many), make(chan struct{})
	r := open(t, newStore(t), workers.Options{Tell: func(_ context.Context, w persistence.Worker, _ bool) {
		told <- w.ID
		<-over
	}})
	registered := make(chan error, many)
	for i := range many {
		go func() {
			registered <- r.Register(context.Background(), persistence.Worker{ID: fmt.Sprint(i), URL: "queue", Type: "async"})
		}()
	}
	for range many {
		select {
		case <-told:
		case <-time.After(patience):
			require.FailNow(t, "a registration waits for another one")
		}
	}
	close(over)
	for range many {
		require.NoError(t, <-registered)
	}
}

func TestAnUnknownWorkerIsReadFromTheStore(t *testing.T) {
	store := newStore(t)
	here, there := open(t, store, shared), open(t, store, shared)
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(here.Heartbeat(t.Context(), "w", 1)))
	require.NoError(t, there.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}))
	require.NoError(t, here.Heartbeat(t.Context(), "w", 1), "that somebody has just looked says nothing of what came since")
}

// hanging is a store that no longer returns the workers when hangs is set.
type hanging struct {
	persistence.Workers
	hangs atomic.Bool
	asked chan struct{}
}

func (h *hanging) ListWorkers(ctx context.Context) ([]persistence.Worker, error) {
	if !h.hangs.Load() {
		return h.Workers.ListWorkers(ctx)
	}
	h.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestACallersTimeoutBoundsTheWaitForAnotherRead(t *testing.T) {
	store := &hanging{Workers: newStore(t), asked: make(chan struct{}, 10)}
	r := open(t, store, shared)
	store.hangs.Store(true)
	reading, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = r.Heartbeat(reading, "w", 1) }()
	<-store.asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Heartbeat(over, "w", 1) }()
	select {
	case err := <-ended:
		require.Equal(t, flow.NotFound, flow.ErrorKindOf(err))
	case <-time.After(patience):
		require.Fail(t, "it waits for the other one")
	}
}

// crowded is a store with many additional workers.
type crowded struct {
	persistence.Workers
	mu     sync.Mutex
	silent []persistence.Worker
}

func (c *crowded) ListWorkers(ctx context.Context) ([]persistence.Worker, error) {
	all, err := c.Workers.ListWorkers(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(all, c.silent...), err
}

func (c *crowded) DeleteWorkers(ctx context.Context, since int64) (int, error) {
	c.mu.Lock()
	c.silent = slices.DeleteFunc(c.silent, func(w persistence.Worker) bool { return w.LastHeartbeat < since })
	c.mu.Unlock()
	return c.Workers.DeleteWorkers(ctx, since)
}

func TestRemovedWorkersAreNotReadAgain(t *testing.T) {
	var c clock
	c.Store(1000)
	store := &crowded{Workers: newStore(t)}
	for n := range 10_000 {
		store.silent = append(store.silent, persistence.Worker{ID: fmt.Sprint("silent-", n),
			URL: "queue", Type: "async", RegisteredAt: 1000, JoinedAt: 1000, LastHeartbeat: 1000})
	}
	r := open(t, store, workers.Options{Learn: time.Hour, Now: c.Load})
	c.pass(2 * time.Hour)
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "w", URL: "queue", Type: "async"}))
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(r.Heartbeat(t.Context(), "nobody", 1)), "the store was read")
	require.Len(t, list(t, r), 1)
}
