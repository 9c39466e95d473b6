package client_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// beside starts a server in front of another one. It counts requests and may spoil answers.
func beside(t *testing.T, of *server, spoil func(n int32, w http.ResponseWriter, r *http.Request) bool) (*httptest.Server, *atomic.Int32) {
	var seen atomic.Int32
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := seen.Add(1); spoil == nil || !spoil(n, w, r) {
			of.handler.ServeHTTP(w, r)
		}
	}))
	web.Listener = &mortal{Listener: web.Listener}
	web.Start()
	t.Cleanup(web.Close)
	return web, &seen
}

// mortal is a listener that can die with all its connections, including hijacked ones.
type mortal struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (m *mortal) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if err == nil {
		m.mu.Lock()
		m.conns = append(m.conns, conn)
		m.mu.Unlock()
	}
	return conn, err
}

func (m *mortal) die() {
	m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.conns {
		conn.Close()
	}
}

// Addresses without a listener. A free port would not do, because another test's server may get it.
const nobody, nobodyElse = "http://127.0.0.1:1", "http://127.0.0.1:2"

func withoutRetries(o *client.Options) { o.Retries = 1 }

func TestTheNextServerIsAskedWhenOneCannotBeReached(t *testing.T) {
	s := startServer(t, nil)
	second, seen := beside(t, s, nil)
	c := connect(t, nobody+" , "+second.URL+"/,"+nobodyElse, withoutRetries)
	for range 3 {
		_, err := c.Info(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, seen.Load())
	second.Close()
	_, err := c.Info(t.Context())
	require.Error(t, err, "all are away")
	require.EqualValues(t, 3, seen.Load())
}

func TestTheNextServerIsAskedWhenOneCannotWork(t *testing.T) {
	s := startServer(t, nil)
	first, left := beside(t, s, func(_ int32, w http.ResponseWriter, _ *http.Request) bool { leaving(w); return true })
	second, stayed := beside(t, s, nil)
	c := connect(t, first.URL+","+second.URL, withoutRetries)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	_, err = c.Task(t.Context(), "nope")
	require.Equal(t, "not_found", client.KindOf(err), "a refusal is an answer")
	_, err = c.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int32{1, 3}, []int32{left.Load(), stayed.Load()}, "the one that works is stayed with")
}

func TestAServerThatIsFullIsWaitedFor(t *testing.T) {
	s := startServer(t, nil)
	first, seen := beside(t, s, func(n int32, w http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			busy(w)
		}
		return n == 1
	})
	second, other := beside(t, s, nil)
	_, err := connect(t, first.URL+","+second.URL, withoutRetries).Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int32{2, 0}, []int32{seen.Load(), other.Load()}, "its load is not for the others")
}

func TestACommandWhoseAnswerIsLostHasItsEffectOnce(t *testing.T) {
	s := startServer(t, nil)
	// it carries out the request and dies before it answers
	spoiled := func(_ int32, _ http.ResponseWriter, r *http.Request) bool {
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	first, _ := beside(t, s, spoiled)
	second, _ := beside(t, s, nil)
	both := first.URL + "," + second.URL
	_, err := connect(t, s.base).Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	started, err := connect(t, both, withoutRetries).Start(t.Context(),
		wire.StartRequest{Flow: "waits", Params: json.RawMessage(`{"a": 1}`)})
	require.NoError(t, err)
	require.True(t, started.Created, "by whichever try it was")
	all, err := connect(t, s.base).Tasks(t.Context(), client.TaskQuery{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)

	_, err = connect(t, both, withoutRetries).Signal(t.Context(), started.ID, "other", nil)
	require.NoError(t, err)
	events, err := connect(t, s.base).Events(t.Context(), started.ID, "", 100)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(fmt.Sprint(kinds(events.Items)), "signal_received"))
}

func kinds(events []wire.Event) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Type)
	}
	return kinds
}

// A killed member breaks its streams. They continue at another member, after the last event.
func TestStreamsGoOnAtTheNextServer(t *testing.T) {
	s := startServer(t, nil)
	setup := connect(t, s.base)
	_, err := setup.Publish(t.Context(), "slow", []byte(slow))
	require.NoError(t, err)
	for name, watch := range map[string]func(c *client.Client, id string, heard func(wire.Event)) error{
		"one": func(c *client.Client, id string, heard func(wire.Event)) error {
			for e, err := range c.Watch(t.Context(), id, "") {
				if err != nil {
					return err
				}
				heard(e)
			}
			return nil
		},
		"many": func(c *client.Client, id string, heard func(wire.Event)) error {
			for told, err := range c.WatchAll(t.Context(), map[string]string{id: ""}) {
				if err != nil {
					return err
				}
				if told.Event != nil {
					heard(*told.Event)
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := beside(t, s, nil)
			second, seen := beside(t, s, nil)
			started, err := setup.Start(t.Context(), wire.StartRequest{Flow: "slow"})
			require.NoError(t, err)
			var ids []string
			err = watch(connect(t, first.URL+","+second.URL), started.ID, func(e wire.Event) {
				ids = append(ids, e.ID)
				switch len(ids) {
				case 20:
					first.Listener.(*mortal).die()
				case 60:
					_, err := setup.Signal(t.Context(), started.ID, "stop", json.RawMessage("true"))
					require.NoError(t, err)
				}
			})
			require.NoError(t, err)
			require.Positive(t, seen.Load())
			var want []string
			for e, err := range setup.Watch(t.Context(), started.ID, "") {
				require.NoError(t, err)
				want = append(want, e.ID)
			}
			require.Equal(t, want, ids)
		})
	}
}
