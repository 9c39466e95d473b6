package v1_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

// trouble is the outage of a store. While it is not nil, writes fail with it and reads of tasks get
// no answer.
type trouble struct {
	is atomic.Pointer[persistence.Outage]
}

func (tr *trouble) wrap(set *settings) {
	set.wrap = func(store persistence.Store) persistence.Store {
		return faulty.Wrap(store, faulty.Hooks{
			Commit: func(string, []persistence.Commit) faulty.Fault {
				if outage := tr.is.Load(); outage != nil {
					return faulty.Fault{Before: func(context.Context) error { return outage }}
				}
				return faulty.Fault{}
			},
			Call: func(ctx context.Context, name string) error {
				if name == "Load" && tr.is.Load() != nil {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
		})
	}
}

func TestRequestsGetTheReasonOfAnOutage(t *testing.T) {
	var tr trouble
	s := start(t, tr.wrap)
	slug := s.publish(waits)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	tr.is.Store(&persistence.Outage{Reason: "its disk is full", Err: errors.New("x")})
	const why = "the store is not available, because its disk is full"

	began := time.Now()
	before := s.call(503, "POST", "/v1/tasks", obj{"flow": slug}) // the member does not know yet
	require.Contains(s, before["detail"], why)
	require.Less(s, time.Since(began), 25*time.Second, "it did not wait for the end of its time")
	require.Contains(s, string(s.send("GET", "/readyz", nil).body), why)
	refused := s.call(503, "POST", "/v1/tasks", obj{"flow": slug})
	require.Contains(s, refused["detail"], "nothing was done")
	require.Contains(s, s.call(503, "GET", "/v1/tasks/"+id, nil)["detail"], why, "a read that gets no answer")
	require.Equal(s, "1", s.send("POST", "/v1/tasks", obj{"flow": slug}).header.Get("Retry-After"))

	tr.is.Store(nil)
	require.Eventually(s, func() bool { return s.send("GET", "/readyz", nil).status == 200 }, deadline, time.Millisecond)
	s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
	s.get("/v1/tasks/" + id)
}

// silentStore notes what is read of it for starts while it is away.
type silentStore struct {
	persistence.Store
	away *atomic.Bool
	mu   sync.Mutex
	read []string
}

func (s *silentStore) noteRead(name string) {
	if s.away.Load() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read = append(s.read, name)
	}
}

func (s *silentStore) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	s.noteRead("Flow")
	return s.Store.Flow(ctx, id)
}

func (s *silentStore) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	s.noteRead("FlowBySlug")
	return s.Store.FlowBySlug(ctx, slug)
}

func (s *silentStore) Version(ctx context.Context, id string) (*persistence.Version, error) {
	s.noteRead("Version")
	return s.Store.Version(ctx, id)
}

func (s *silentStore) FindVersion(ctx context.Context, flow string, number int) (*persistence.Version, error) {
	s.noteRead("FindVersion")
	return s.Store.FindVersion(ctx, flow, number)
}

func (s *silentStore) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	s.noteRead("Task")
	return s.Store.Task(ctx, id)
}

func (s *silentStore) Schedule(ctx context.Context, name string) (*persistence.Schedule, error) {
	s.noteRead("Schedule")
	return s.Store.Schedule(ctx, name)
}

func (s *silentStore) Hook(ctx context.Context, name string) (*persistence.Hook, error) {
	s.noteRead("Hook")
	return s.Store.Hook(ctx, name)
}

func (s *silentStore) CreateFlow(ctx context.Context, f persistence.Flow) error {
	s.noteRead("CreateFlow")
	return s.Store.CreateFlow(ctx, f)
}

// knowingEngine knows that its store is away. It counts how often it was asked.
type knowingEngine struct {
	engine.Engine
	away  *atomic.Bool
	asked *atomic.Int64
}

func (e knowingEngine) Ready() error {
	e.asked.Add(1)
	if e.away.Load() {
		return engine.Unable(flow.Errorf(flow.Busy, "the store is not available, because it does not answer"))
	}
	return e.Engine.Ready()
}

func TestStartsAreRefusedWithoutReadingAStoreThatIsKnownToBeAway(t *testing.T) {
	store := &silentStore{away: &atomic.Bool{}}
	s := start(t, func(set *settings) {
		set.wrap = func(of persistence.Store) persistence.Store { store.Store = of; return store }
		set.asked = func(of engine.Engine) engine.Engine { return knowingEngine{of, store.away, &atomic.Int64{}} }
	})
	slug := s.publish(waits)
	task := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	s.call(201, "PUT", "/v1/schedules/nightly", obj{"flow": slug, "cron": "0 3 * * *"})
	hook := s.hook(obj{"flow": slug})
	s.call(201, "PUT", "/v1/flows/"+slug+"-dag", obj{"profile": "pgflow", "nodes": obj{"a": obj{"func": "mul"}}})
	day := obj{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}

	store.away.Store(true)
	for _, start := range []struct {
		path    string
		body    any
		headers []string
	}{
		{path: "/v1/tasks", body: obj{"flow": slug}},
		{path: "/v1/tasks", body: obj{"flow": slug, "version": 1}},
		{path: "/v1/tasks/" + task + "/rerun", body: obj{}},
		{path: "/v1/tasks/" + task + "/fork", body: obj{}},
		{path: "/v1/try", body: obj{"definition": atOnce}},
		{path: "/v1/schedules/nightly/trigger", body: obj{}},
		{path: "/v1/schedules/nightly/backfill", body: day},
		{path: hook, body: `{}`, headers: standard(key, "a", time.Now(), `{}`)},
		{path: "/tasks", body: obj{"flow_id": slug}},
		{path: "/flows/" + slug + "-dag/runs", body: obj{}},
	} {
		answer := s.send("POST", start.path, start.body, start.headers...)
		require.Equal(s, 503, answer.status, "%s: %s", start.path, answer.body)
		require.Contains(s, string(answer.body), "the store is not available, because it does not answer: nothing was done", start.path)
	}
	several := s.call(200, "POST", "/v1/tasks/starts", obj{"starts": []obj{{"flow": slug}}})
	require.Contains(s, fmt.Sprint(several), "nothing was done")
	store.mu.Lock()
	defer store.mu.Unlock()
	require.Empty(s, store.read)
	store.away.Store(false)
}

// hangingStore does not answer reads of tasks while it hangs, except the first ones. It counts the
// reads without an answer.
type hangingStore struct {
	persistence.Store
	hangs    atomic.Bool
	answered atomic.Int64 // reads that are still answered
	begun    atomic.Int64
}

func (s *hangingStore) awaitAnswer(ctx context.Context) error {
	if !s.hangs.Load() || s.answered.Add(-1) >= 0 {
		return nil
	}
	s.begun.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (s *hangingStore) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	if err := s.awaitAnswer(ctx); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, ids)
}

func (s *hangingStore) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	if err := s.awaitAnswer(ctx); err != nil {
		return nil, err
	}
	return s.Store.ListTasks(ctx, f)
}

func TestReadsUnderWayEndSoonAfterTheMemberKnowsThatTheStoreIsAway(t *testing.T) {
	store, away, asked := &hangingStore{}, &atomic.Bool{}, &atomic.Int64{}
	s := start(t, func(set *settings) {
		set.ReadTimeout = time.Hour
		set.wrap = func(of persistence.Store) persistence.Store { store.Store = of; return store }
		set.asked = func(of engine.Engine) engine.Engine { return knowingEngine{of, away, asked} }
	})
	slug := s.publish(waits)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	s.call(201, "PUT", "/v1/flows/"+slug+"-dag", obj{"mode": "dag", "nodes": obj{"a": obj{"kind": "timer", "delay": "1h"}}})
	run := s.call(201, "POST", "/v1/tasks", obj{"flow": slug + "-dag"})["id"].(string)
	for _, read := range []struct {
		method, path string
		body         any
		answered     int64 // reads before the one that hangs
	}{
		{method: "GET", path: "/v1/tasks/" + id},
		{method: "GET", path: "/v1/tasks?flow=" + slug},
		{method: "GET", path: "/v1/tasks/" + id + "?wait_ms=1", answered: 1},
		{method: "POST", path: "/v1/tasks", body: obj{"flow": slug, "wait_ms": 1}},
		{method: "GET", path: "/runs/" + run + "/wait?status=completed"},
	} {
		store.begun.Store(0)
		store.answered.Store(read.answered)
		store.hangs.Store(true)
		answers := make(chan sent, 1)
		go func() {
			defer close(answers)
			answers <- s.send(read.method, read.path, read.body)
		}()
		require.Eventually(t, func() bool { return store.begun.Load() == 1 }, deadline, time.Millisecond, read.path)
		// The request looks again and again whether the store is away.
		first := asked.Load()
		require.Eventually(t, func() bool { return asked.Load() > first }, deadline, time.Millisecond, read.path)
		require.Empty(t, answers, "a store that is only slow gets its time: %s", read.path)

		known := time.Now()
		away.Store(true)
		answer := <-answers
		require.Equal(t, 503, answer.status, "%s: %s", read.path, answer.body)
		require.Contains(t, string(answer.body), "the store is not available, because it does not answer", read.path)
		require.Less(t, time.Since(known), 10*time.Second, "%s: the limit of a read is an hour", read.path)
		away.Store(false)
		store.hangs.Store(false)
	}
	s.get("/v1/tasks/" + id)
	s.get("/v1/tasks?flow=" + slug)
}
