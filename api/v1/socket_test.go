package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// pgRun is a flow in pgflow's dialect whose steps are completed by hand.
const pgRun = `{"profile": "pgflow", "nodes": {"a": {"route": "direct"}, "b": {"depends_on": ["a"], "route": "direct"}}}`

func TestOneSocketFollowsManyTasksAndRuns(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug, id := s.publish(pgRun), uuid.NewString()
		one, two, run := s.task(waits), s.task(waits), "pgflow:run:"+id
		k := s.socket()
		k.subscribeChannel(run, "")
		k.nextOf(run, wire.StreamSubscribed) // before the run exists
		s.run(slug, id)
		k.nextOf(run, "run:started")
		k.nextOf(run, "step:a:started")
		k.subscribeChannel("task:"+one, "")
		k.nextOf("task:"+one, wire.StreamSubscribed)
		k.nextOf("task:"+one, wire.StreamEvent)
		k.nextOf("task:"+one, wire.StreamEvent)
		k.subscribeChannel("task:"+two, "")
		s.call(200, "POST", "/v1/tasks/"+one+"/signal", obj{"key": "go", "value": 1})
		s.call(200, "POST", "/v1/tasks/"+two+"/cancel", nil)
		s.completeStep(id, "a")
		s.completeStep(id, "b")
		said := k.untilClosed(3)
		for task, state := range map[string]string{one: "completed", two: "canceled"} {
			list := said["task:"+task]
			got := eventIDs(list)
			if task == one {
				got = append(s.eventIDs(task)[:2], got...)
			}
			require.Equal(t, s.eventIDs(task), got)
			var end wire.TaskEnd
			require.NoError(t, json.Unmarshal(list[len(list)-2].Data, &end))
			require.Equal(t, []string{wire.StreamEnd, task, state}, []string{list[len(list)-2].Event, end.Task, end.State})
			require.JSONEq(t, `{"reason": "ended"}`, string(list[len(list)-1].Data))
		}
		require.Equal(t, []string{"step:a:completed", "step:b:started", "step:b:completed",
			"run:completed", "closed"}, eventNames(said[run]))
	})
}

func TestASocketIsReplacedWithoutAGap(t *testing.T) {
	onBothStores(t, func(s *server) {
		task := s.task(waits)
		var got []any
		last := ""
		for i := range 5 { // each connection breaks after a few messages, while more events happen
			k := s.socket()
			k.subscribeChannel("task:"+task, last)
			k.nextOf("task:"+task, wire.StreamSubscribed)
			for range 1 + i%2 {
				m := k.nextOf("task:"+task, wire.StreamEvent)
				got, last = append(got, m.ID), m.ID
			}
			_ = k.conn.CloseNow()
			for n := range 3 {
				s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": fmt.Sprintf("k%d-%d", i, n), "value": 1})
			}
		}
		s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": "go", "value": 1})
		k := s.socket()
		k.subscribeChannel("task:"+task, last)
		require.Equal(t, s.eventIDs(task), append(got, eventIDs(k.untilClosed(1)["task:"+task])...))

		slug, id := s.publish(pgRun), uuid.NewString()
		run := "pgflow:run:" + id
		s.run(slug, id)
		k = s.socket()
		k.subscribeChannel(run, "")
		k.nextOf(run, wire.StreamSubscribed)
		snapshot := k.nextOf(run, "snapshot")
		_ = k.conn.CloseNow()
		s.completeStep(id, "a")
		s.completeStep(id, "b")
		k = s.socket()
		k.subscribeChannel(run, snapshot.ID)
		all := k.untilClosed(1)[run]
		require.Equal(t, []string{"subscribed", "step:a:completed", "step:b:started",
			"step:b:completed", "run:completed", "closed"}, eventNames(all))
		k.subscribeChannel(run, all[2].ID)
		require.Equal(t, []string{"subscribed", "step:b:completed", "run:completed", "closed"}, eventNames(k.untilClosed(1)[run]))
		k.subscribeChannel(run, all[4].ID)
		require.Equal(t, []string{"closed"}, eventNames(k.untilClosed(1)[run]))
	})
}

func TestASubscriptionEndsOnRequest(t *testing.T) {
	s := start(t)
	task := s.task(waits)
	channel := "task:" + task
	k := s.socket()
	for range 2 {
		k.subscribeChannel(channel, "")
		k.nextOf(channel, wire.StreamSubscribed)
		k.nextOf(channel, wire.StreamEvent)
		k.nextOf(channel, wire.StreamEvent)
		k.send(`{"unsubscribe": {"channel": "` + channel + `"}}`)
		require.JSONEq(t, `{"reason": "unsubscribed"}`, string(k.nextOf(channel, wire.StreamClosed).Data))
	}
	require.NoError(t, k.conn.Close(websocket.StatusNormalClosure, ""))
}

func TestASocketRefusesWhatItDoesNotUnderstand(t *testing.T) {
	s := start(t)
	task := s.task(waits)
	k := s.socket()
	refused := func(channel string, status int, where, what string) {
		t.Helper()
		var p wire.Problem
		require.NoError(t, json.Unmarshal(k.nextOf(channel, wire.StreamRejected).Data, &p))
		require.Equal(t, []any{status, where}, []any{p.Status, p.Field})
		require.Contains(t, p.Message, what)
		require.NotEmpty(t, p.Hint)
	}
	for text, want := range map[string]string{`{`: "not a valid request", `[]`: "not a valid request",
		`{}`: "either subscribe or unsubscribe", `{"subscribe": {"chanel": "x"}}`: "not a valid request",
		`{"subscribe": {"channel": "a"}, "unsubscribe": {"channel": "a"}}`: "either subscribe " +
			"or unsubscribe", `{} {}`: "not a valid request"} {
		k.send(text)
		refused("", 400, "message", want)
	}
	require.NoError(t, k.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)))
	refused("", 400, "message", "binary")
	k.subscribeChannel("nope", "")
	refused("nope", 404, "subscribe.channel", "no channel")
	k.subscribeChannel("task:nope", "")
	refused("task:nope", 404, "subscribe.channel", "no task")
	k.subscribeChannel("pgflow:run:nope", "")
	refused("pgflow:run:nope", 404, "subscribe", "nope")
	k.subscribeChannel("task:"+task, "x")
	refused("task:"+task, 400, "subscribe.after", "not a position")
	k.send(`{"unsubscribe": {"channel": "task:x"}}`)
	refused("task:x", 404, "unsubscribe.channel", "no subscription")

	k.subscribeChannel("task:"+task, "999") // no event follows it
	k.nextOf("task:"+task, wire.StreamSubscribed)
	k.subscribeChannel("task:"+task, "999")
	refused("task:"+task, 409, "subscribe.channel", "there is a subscription")
	for range 99 {
		run := "pgflow:run:" + uuid.NewString()
		k.subscribeChannel(run, "")
		k.nextOf(run, wire.StreamSubscribed)
	}
	k.subscribeChannel("pgflow:run:"+uuid.NewString(), "")
	m := k.next()
	require.Equal(t, wire.StreamRejected, m.Event)
	require.Contains(t, string(m.Data), "at most 100 subscriptions")

	k.send(`{"subscribe": {"channel": "` + strings.Repeat("x", 10_000) + `"}}`)
	_, err := k.readMessage()
	require.Equal(t, websocket.StatusMessageTooBig, websocket.CloseStatus(err), "%v", err)
}

func TestASocketNeedsAccess(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"t"} })
	for name, tt := range map[string]struct {
		header http.Header
		status int
	}{
		"a token":         {http.Header{"Authorization": {"Bearer t"}}, 101},
		"a local page":    {http.Header{"Authorization": {"Bearer t"}, "Origin": {"http://localhost:5173"}}, 101},
		"no token":        {http.Header{}, 401},
		"another token":   {http.Header{"Authorization": {"Bearer x"}}, 401},
		"a foreign page":  {http.Header{"Authorization": {"Bearer t"}, "Origin": {"https://evil.example"}}, 403},
		"a page's a file": {http.Header{"Authorization": {"Bearer t"}, "Origin": {"null"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			conn, resp, err := s.dial(&websocket.DialOptions{HTTPHeader: tt.header})
			require.Equal(t, tt.status, resp.StatusCode, "%v", err)
			if err == nil {
				require.NoError(t, conn.CloseNow())
			}
		})
	}
	p := s.refused(426, "header.Upgrade", "GET", "/v1/ws", nil, "Authorization", "Bearer t")
	require.Equal(t, "this route is a WebSocket", p["message"])
}

func TestASocketIsPinged(t *testing.T) {
	s := start(t, func(set *settings) { set.heartbeat = 10 * time.Millisecond })
	var pings atomic.Int64
	conn, _, err := s.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return pings.Add(1) > 0 }})
	require.NoError(t, err)
	conn.CloseRead(context.Background())
	require.Eventually(t, func() bool { return pings.Load() > 5 }, deadline, time.Millisecond)
	require.NoError(t, conn.Ping(t.Context()), "and it answers pings")
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
}

func TestASocketThatAnswersNoPingIsClosed(t *testing.T) {
	s := start(t, func(set *settings) { set.heartbeat, set.patience = 10*time.Millisecond, 10*time.Millisecond })
	conn, _, err := s.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
	require.NoError(t, err)
	_, err = (&clientSocket{t, conn}).readMessage()
	require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
	require.ErrorContains(t, err, "a ping was not answered")
}

// rotten is a store with a bug.
type rotten struct{ persistence.Store }

func (r rotten) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	if id == "rotten" {
		panic("a bug")
	}
	return r.Store.Task(ctx, id)
}

func TestAPanicEndsOnlyItsSocket(t *testing.T) {
	s := start(t, func(set *settings) {
		set.wrap = func(inner persistence.Store) persistence.Store { return rotten{inner} }
	})
	k := s.socket()
	k.subscribeChannel("task:rotten", "")
	_, err := k.readMessage()
	require.Equal(t, websocket.StatusInternalError, websocket.CloseStatus(err), "%v", err)
	task := s.task(atOnce)
	k = s.socket()
	k.subscribeChannel("task:"+task, "")
	require.Equal(t, s.eventIDs(task), eventIDs(k.untilClosed(1)["task:"+task]))
}

// desk is a store with readers that wait until the test lets them continue.
type desk struct {
	persistence.Store
	entered, goOn chan struct{}

	mu        sync.Mutex
	now, most int
}

func (d *desk) Task(context.Context, string) (*persistence.TaskRow, error) {
	d.count(1)
	defer d.count(-1)
	d.entered <- struct{}{}
	<-d.goOn
	return nil, persistence.ErrNotFound
}

func (d *desk) count(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now += more
	d.most = max(d.most, d.now)
}

func TestAFloodOfSubscriptionsLeavesTheStoreToOthers(t *testing.T) {
	const flood = 60
	d := &desk{entered: make(chan struct{}, flood), goOn: make(chan struct{}, flood)}
	s := start(t, func(set *settings) {
		set.wrap = func(store persistence.Store) persistence.Store {
			d.Store = store
			return d
		}
	})
	sockets := []*clientSocket{s.socket(), s.socket()}
	for i := range flood {
		sockets[i%2].subscribeChannel("task:"+fmt.Sprint(i), "")
	}
	for range flood {
		<-d.entered
		d.goOn <- struct{}{}
	}
	for i := range flood {
		require.Equal(t, wire.StreamRejected, sockets[i%2].next().Event)
	}
	require.LessOrEqual(t, d.most, 4)
}

func TestSocketsAreClosedWhenTheServerStops(t *testing.T) {
	closed := make(chan error, 1)
	t.Run("serving", func(inner *testing.T) {
		s := start(inner)
		k := (&server{T: t, base: s.base, http: s.http}).socket()
		k.subscribeChannel("task:"+s.task(waits), "")
		require.Equal(inner, wire.StreamSubscribed, k.next().Event)
		go func() {
			for {
				if _, _, err := k.conn.Read(context.Background()); err != nil {
					closed <- err
					return
				}
			}
		}()
	})
	err := <-closed
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err), "%v", err)
	require.ErrorContains(t, err, "subscribe behind the last ids")
}

// awaited is a log that waits for a line.
type awaited struct {
	slog.Handler
	text string
	once sync.Once
	seen chan struct{}
}

func (a *awaited) Enabled(context.Context, slog.Level) bool { return true }

func (a *awaited) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if strings.Contains(attr.Value.String(), a.text) {
			a.once.Do(func() { close(a.seen) })
		}
		return true
	})
	return nil
}

func TestASlowReaderIsDisconnectedAndResumes(t *testing.T) {
	log := &awaited{Handler: slog.DiscardHandler, text: "read too slowly", seen: make(chan struct{})}
	s := start(t, func(set *settings) {
		set.patience, set.v1Logger = 300*time.Millisecond, slog.New(log)
		set.listen = func(l net.Listener) net.Listener { return smallBuffers{l} }
	})
	task := s.task(waits)
	channel := "task:" + task
	large := json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
	for range 20 { // more than the kernel buffers
		require.NoError(t, s.order(task, flow.Signal{Key: "k", Value: large}))
	}
	s.call(200, "POST", "/v1/tasks/"+task+"/cancel", nil)
	k := s.socket()
	k.subscribeChannel(channel, "")
	<-log.seen
	got, err := k.untilGone()
	require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
	require.ErrorContains(t, err, "messages are read too slowly: connect again")
	for err != nil { // this machine may be too slow as well
		k = s.socket()
		k.subscribeChannel(channel, got[len(got)-1].(string))
		var more []any
		more, err = k.untilGone()
		got = append(got, more...)
	}
	require.Equal(t, s.eventIDs(task), got)
}
