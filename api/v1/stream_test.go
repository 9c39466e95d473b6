package v1_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// message is a message of a stream; comments have only a text.
type message struct {
	kind, id, comment string
	data              obj
}

// stream reads messages until it ends or stop is called.
type stream struct {
	*testing.T
	in   *bufio.Scanner
	stop context.CancelFunc
	resp *http.Response
}

func (s *server) stream(task, query string, headers ...string) *stream {
	s.Helper()
	return s.streamOf("/v1/tasks/"+task+"/stream"+query, headers...)
}

func (s *server) streamOf(path string, headers ...string) *stream {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", s.base+path, nil)
	require.NoError(s, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(s, err)
	require.Equal(s, 200, resp.StatusCode)
	require.Equal(s, "text/event-stream", resp.Header.Get("Content-Type"))
	st := &stream{s.T, bufio.NewScanner(resp.Body), stop, resp}
	s.Cleanup(st.close)
	require.Equal(s, message{}, st.next(), "it begins with the time for reconnecting")
	return st
}

func (st *stream) close() {
	st.stop()
	_ = st.resp.Body.Close()
}

// next returns the next message. The zero message is a field without content, or the end.
func (st *stream) next() (m message) {
	st.Helper()
	for st.in.Scan() {
		name, value, _ := strings.Cut(st.in.Text(), ": ")
		switch name {
		case "":
			if st.in.Text() == "" {
				return m
			}
			m.comment = value
		case "id":
			m.id = value
		case "event":
			m.kind = value
		case "data":
			require.NoError(st, json.Unmarshal([]byte(value), &m.data))
		}
	}
	return m
}

// untilEnd reads up to the last message and skips comments.
func (st *stream) untilEnd() (events []message, end message) {
	st.Helper()
	for {
		switch m := st.next(); {
		case m.kind == "end":
			require.False(st, st.in.Scan(), "nothing follows the end")
			return events, m
		case m.comment != "":
		default:
			require.NotEmpty(st, m.id, "the stream broke off")
			events = append(events, m)
		}
	}
}

func ids(events []message) []any {
	list := []any{}
	for _, e := range events {
		list = append(list, e.id)
	}
	return list
}

func TestAStreamEndsWithItsTask(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	st := s.stream(id, "")
	first := st.next()
	require.Equal(t, "task_created", first.data["type"])
	require.Equal(t, first.id, first.data["id"])
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": 1})
	events, end := st.untilEnd()
	require.Equal(t, obj{"task": id, "state": "completed", "result": obj{"go": 1.0, "got": 1.0}}, end.data)
	require.Equal(t, values(s.get("/v1/tasks/"+id+"/events"), "id"), append([]any{first.id}, ids(events)...))
}

func TestAStreamIsTakenUpWhereItBrokeOff(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	st := s.stream(id, "")
	got := []any{st.next().id}
	st.close()
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "other"})
	st = s.stream(id, "", "Last-Event-ID", got[0].(string))
	for range 2 {
		got = append(got, st.next().id)
	}
	st.close()
	s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
	st = s.stream(id, "?after="+got[2].(string))
	events, end := st.untilEnd()
	require.Equal(t, "canceled", end.data["state"])
	require.Equal(t, values(s.get("/v1/tasks/"+id+"/events"), "id"), append(got, ids(events)...))
	last := events[len(events)-1].id
	again, end := s.stream(id, "", "Last-Event-ID", last).untilEnd()
	require.Empty(t, again)
	require.Equal(t, "canceled", end.data["state"], "who comes late hears the end")
	s.refused(400, "header.Last-Event-ID", "GET", "/v1/tasks/"+id+"/stream", nil, "Last-Event-ID", "x")
	s.refused(400, "query.after", "GET", "/v1/tasks/"+id+"/stream?after=x", nil)
}

func TestEveryPlaceInAHistoryIsOneToGoOnFrom(t *testing.T) {
	s := start(t)
	id := s.task(atOnce) // all events are in one row of the journal
	s.ended(id, "completed")
	all := values(s.get("/v1/tasks/"+id+"/events"), "id")
	for i, at := range all {
		events, _ := s.stream(id, "", "Last-Event-ID", at.(string)).untilEnd()
		require.Equal(t, all[i+1:], ids(events))
	}
}

func TestASilentStreamShowsThatItIsAlive(t *testing.T) {
	s := start(t, func(set *settings) {
		set.heartbeat = 100 * time.Millisecond
		set.ReadTimeout = time.Second // the stream outlasts the server's limits
	})
	id := s.task(waits)
	st := s.stream(id, "")
	alive := 0
	for range 20 {
		if st.next().comment == "alive" {
			alive++
		}
	}
	require.Greater(t, alive, 10)
	s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
	_, end := st.untilEnd()
	require.Equal(t, "canceled", end.data["state"])
}

func TestManyFollowOneTask(t *testing.T) {
	s := start(t)
	id := s.task(long, obj{"list": []string{"a", "b", "c", "d", "e", "f"}})
	done := make(chan []any)
	for range 8 {
		st := s.stream(id, "")
		go func() {
			events, _ := st.untilEnd()
			done <- ids(events)
		}()
	}
	s.ended(id, "completed")
	want := values(s.get("/v1/tasks/"+id+"/events"), "id")
	for range 8 {
		require.Equal(t, want, <-done)
	}
}

func TestTheServerLeavesThoughAStreamIsOpen(t *testing.T) {
	var st *stream
	var leaves time.Time
	t.Run("serving", func(inner *testing.T) {
		s := start(inner, func(set *settings) { set.Grace = 10 * time.Minute })
		outside := &server{T: t, base: s.base, http: &http.Client{Transport: &http.Transport{}}}
		t.Cleanup(outside.http.CloseIdleConnections)
		st = outside.stream(s.task(waits), "")
		require.Equal(inner, "task_created", st.next().data["type"])
		leaves = time.Now()
	})
	require.Less(t, time.Since(leaves), time.Minute)
	for m := st.next(); m.id != ""; m = st.next() {
		require.NotEqual(t, "end", m.kind, "the task goes on")
	}
}

// outage is a store that cannot be read while down is true.
type outage struct {
	persistence.Store
	down, downForLoads atomic.Bool
}

var errDown = fmt.Errorf("read a task: %w", persistence.ErrUnavailable)

func (o *outage) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	if o.down.Load() {
		return nil, errDown
	}
	return o.Store.Task(ctx, id)
}

func (o *outage) Load(ctx context.Context, tasks []string) ([]*persistence.Record, error) {
	if o.down.Load() || o.downForLoads.Load() {
		return nil, errDown
	}
	return o.Store.Load(ctx, tasks)
}

// isTroubled waits for the comment about the outage, and returns the ids of the events before it.
func (st *stream) isTroubled() (before []any) {
	st.Helper()
	for range 100 {
		next := st.next()
		if next.comment == "the store does not answer: trying on" {
			return before
		}
		if next.id != "" {
			before = append(before, next.id)
		}
	}
	require.FailNow(st, "the stream does not tell of the outage")
	return nil
}

func TestAnOutageOfTheStoreIsBusy(t *testing.T) {
	s, store := startOnOutage(t)
	id := s.task(waits)
	store.down.Store(true)
	defer store.down.Store(false)
	resp, err := s.http.Get(s.base + "/v1/tasks/" + id)
	require.NoError(t, err)
	defer resp.Body.Close()
	var p wire.Problem
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
	require.Equal(t, []any{503, "busy", "the store is not available"}, []any{p.Status, p.Code, p.Message})
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
}

func startOnOutage(t *testing.T) (*server, *outage) {
	store := &outage{}
	return start(t, func(set *settings) {
		set.wrap = func(inner persistence.Store) persistence.Store {
			store.Store = inner
			return store
		}
	}), store
}

func TestAStreamOutlastsAnOutageOfTheStore(t *testing.T) {
	s, store := startOnOutage(t)
	id := s.task(waits)
	st := s.stream(id, "")
	got := []any{st.next().id, st.next().id}
	store.down.Store(true)
	signal := func(key string) {
		require.NoError(t, s.order(id, flow.Signal{Key: key, Value: []byte(`1`)}))
	}
	signal("other")
	got = append(got, st.isTroubled()...)
	signal("go")
	store.down.Store(false)
	events, end := st.untilEnd()
	require.Equal(t, "completed", end.data["state"])
	require.Equal(t, values(s.get("/v1/tasks/"+id+"/events"), "id"), append(got, ids(events)...))
}

func TestTheEndOfAStreamOutlastsAnOutageOfTheStore(t *testing.T) {
	s, store := startOnOutage(t)
	id := s.task(atOnce)
	s.ended(id, "completed")
	store.downForLoads.Store(true)
	st := s.stream(id, "")
	st.isTroubled()
	store.downForLoads.Store(false)
	_, end := st.untilEnd()
	require.Equal(t, "completed", end.data["state"])
}
