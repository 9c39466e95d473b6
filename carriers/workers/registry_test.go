package workers_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long tests wait for events that are immediate on an idle machine.
const patience = time.Minute

// clock is the store's time, advanced by the test.
type clock struct{ atomic.Int64 }

func (c *clock) pass(d time.Duration) { c.Add(d.Milliseconds()) }

func newStore(t testing.TB) persistence.Store {
	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func open(t testing.TB, store persistence.Workers, opts workers.Options) *workers.Registry {
	r, err := workers.Open(t.Context(), store, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func list(t testing.TB, r *workers.Registry) []persistence.Worker {
	l, err := r.List(t.Context())
	require.NoError(t, err)
	return l
}

func ids(l []persistence.Worker) []string {
	var out []string
	for _, w := range l {
		out = append(out, w.ID)
	}
	return out
}

func TestRegistrationsAreListedInTheirOrder(t *testing.T) {
	var c clock
	c.Store(1000)
	r := open(t, newStore(t), workers.Options{Now: c.Load})
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "b", URL: "http://127.0.0.1:1", Services: []string{"x", "y"}}))
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "a", URL: "queue", Type: "async"}))
	require.NoError(t, r.Heartbeat(t.Context(), "b", 4))
	c.pass(time.Second)
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "b", URL: "http://localhost:2/", Services: []string{"z"}, Load: 9}))
	require.Equal(t, []persistence.Worker{
		{ID: "b", URL: "http://localhost:2/", Type: "http", Services: []string{"z"},
			LastHeartbeat: 2000, RegisteredAt: 1000, JoinedAt: 2000},
		{ID: "a", URL: "queue", Type: "async", LastHeartbeat: 1000, RegisteredAt: 1000, JoinedAt: 1000},
	}, list(t, r))
}

func TestAWorkerThatSaysGoodbyeIsRemovedAtOnce(t *testing.T) {
	store := newStore(t)
	r := open(t, store, workers.Options{Self: "here"})
	for _, id := range []string{"a", "b"} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: id, URL: "queue", Type: "async"}))
	}
	require.NoError(t, r.Heartbeat(t.Context(), "a", 1))
	require.NoError(t, r.Deregister(t.Context(), "a"))
	require.Equal(t, []string{"here", "b"}, ids(list(t, r)))
	for _, id := range []string{"a", "x", "here"} {
		require.Equal(t, flow.NotFound, flow.ErrorKindOf(r.Deregister(t.Context(), id)), id)
	}
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(r.Heartbeat(t.Context(), "a", 1)))
	require.NoError(t, r.Close(t.Context()))
	require.Equal(t, []string{"b"}, ids(list(t, open(t, store, workers.Options{}))))
}

func TestAHeartbeatCountsAtOnceAndForItsWorkerAlone(t *testing.T) {
	var c clock
	r := open(t, newStore(t), workers.Options{Now: c.Load})
	for _, id := range []string{"a", "b"} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: id, URL: "queue", Type: "async"}))
	}
	c.pass(time.Minute)
	require.NoError(t, r.Heartbeat(t.Context(), "b", 3))
	l := list(t, r)
	require.Equal(t, []int64{0, 60_000}, []int64{l[0].LastHeartbeat, l[1].LastHeartbeat})
	require.Equal(t, []int{0, 3}, []int{l[0].Load, l[1].Load})
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(r.Heartbeat(t.Context(), "c", 0)))
}

func TestLocalFunctionsAreListed(t *testing.T) {
	var c clock
	c.Store(7)
	r := open(t, newStore(t), workers.Options{Now: c.Load, Self: "m1", Functions: func() []string { return []string{"mul"} }})
	require.Equal(t, []persistence.Worker{{ID: "m1", URL: "local", Type: "local", Services: []string{"mul"}, LastHeartbeat: 7}}, list(t, r))
}

func TestRegistrationsSurviveARestart(t *testing.T) {
	var c clock
	store := newStore(t)
	r := open(t, store, workers.Options{Now: c.Load, Refresh: time.Hour})
	for _, id := range []string{"b", "a"} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: id, URL: "queue", Type: "async"}))
	}
	c.pass(time.Minute)
	require.NoError(t, r.Heartbeat(t.Context(), "a", 2))
	before := list(t, r)
	require.NoError(t, r.Close(t.Context()))
	c.pass(time.Minute)
	again := open(t, store, workers.Options{Now: c.Load})
	require.Equal(t, before, list(t, again))
	require.NoError(t, again.Heartbeat(t.Context(), "b", 1))
}

// touches counts the writes of heartbeats, and refuses the first ones.
type touches struct {
	persistence.Workers
	refuse int
	groups chan []persistence.Heartbeat
}

func (s *touches) TouchWorkers(ctx context.Context, beats []persistence.Heartbeat) error {
	if s.refuse--; s.refuse >= 0 {
		return errors.New("not now")
	}
	s.groups <- beats
	return s.Workers.TouchWorkers(ctx, beats)
}

func TestHeartbeatsAreWrittenInGroupsAndNotLost(t *testing.T) {
	s := &touches{Workers: newStore(t), refuse: 2, groups: make(chan []persistence.Heartbeat, 100)}
	r := open(t, s, workers.Options{Refresh: 20 * time.Millisecond})
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: id, URL: "queue", Type: "async"}))
	}
	for i := range 1000 {
		require.NoError(t, r.Heartbeat(t.Context(), []string{"a", "b"}[i%2], i))
	}
	written := map[string]int{}
	for len(written) < 2 || written["a"] != 998 || written["b"] != 999 {
		for _, b := range <-s.groups {
			written[b.ID] = b.Load
		}
	}
	require.NoError(t, r.Close(t.Context()))
	require.Less(t, len(s.groups), 10)
}

func TestLongSilentWorkersAreRemoved(t *testing.T) {
	var c clock
	store := newStore(t)
	r := open(t, store, workers.Options{Now: c.Load, Refresh: 5 * time.Millisecond, Forget: time.Hour})
	for _, id := range []string{"a", "b"} {
		require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: id, URL: "http://127.0.0.1:1", Services: []string{"s"}}))
	}
	c.pass(50 * time.Minute)
	require.NoError(t, r.Heartbeat(t.Context(), "b", 0))
	c.pass(20 * time.Minute)
	require.Eventually(t, func() bool {
		kept, err := store.ListWorkers(t.Context())
		return err == nil && len(kept) == 1
	}, patience, 5*time.Millisecond)
	require.Equal(t, []string{"b"}, ids(list(t, r)))
}

func TestRegistrationLimits(t *testing.T) {
	r := open(t, newStore(t), workers.Options{Allow: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("0.0.0.0/8")}})
	http := func(url string) persistence.Worker { return persistence.Worker{ID: "w", URL: url} }
	for name, tt := range map[string]struct {
		worker persistence.Worker
		want   string // part of the error, "" if accepted
	}{
		"loopback":                 {http("http://127.0.0.1:8080"), ""},
		"loopback by name":         {http("http://localhost:8080/base/"), ""},
		"loopback of version 6":    {http("https://[::1]:8080"), ""},
		"an allowed network":       {http("http://10.1.2.3:8080"), ""},
		"an allowed one, mapped":   {http("http://[::ffff:10.1.2.3]:8080"), ""},
		"another network":          {http("http://10.2.2.3:8080"), "neither loopback nor in a network"},
		"link-local, even allowed": {http("http://169.254.169.254/latest"), ": 169.254.169.254 is neither loopback nor in a network"},
		"link-local of version 6":  {http("http://[fe80::1]:80"), "neither loopback nor in a network"},
		"no particular address":    {http("http://0.0.0.0:80"), "neither loopback nor in a network"},
		"another scheme":           {http("file:///etc/passwd"), "want http://host:port"},
		"no url":                   {http(""), "want http://host:port"},
		"a user in the url":        {http("http://u:secret@127.0.0.1"), "may have no user"},
		"no id":                    {persistence.Worker{URL: "http://127.0.0.1:1"}, "needs an id"},
		"a service without a name": {persistence.Worker{ID: "w", URL: "queue", Type: "async", Services: []string{""}}, "a service's name"},
		"an id that is no text":    {persistence.Worker{ID: "w\x00", URL: "queue", Type: "async"}, "U+0000"},
		"a url that is no text":    {persistence.Worker{ID: "w", URL: "\xff", Type: "async"}, "U+0000"},
		"a type that is no text":   {persistence.Worker{ID: "w", URL: "queue", Type: "\x00"}, "U+0000"},
		"a service that is none":   {persistence.Worker{ID: "w", URL: "queue", Type: "async", Services: []string{"s", "\x00"}}, "U+0000"},
		"a label that is no text":  {persistence.Worker{ID: "w", URL: "queue", Type: "async", Labels: []string{"s", "\x00"}}, "U+0000"},
		"one that is not called":   {persistence.Worker{ID: "w", URL: "queue", Type: "async"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.Register(t.Context(), tt.worker)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestLabelsAreKeptInOrder(t *testing.T) {
	store := newStore(t)
	r := open(t, store, workers.Options{})
	w := persistence.Worker{ID: "a", URL: "queue", Type: "async", Labels: []string{"b", "a", "b"}}
	require.NoError(t, r.Register(t.Context(), w))
	require.Equal(t, []string{"a", "b"}, list(t, r)[0].Labels)
	require.NoError(t, r.Close(t.Context()))
	r = open(t, store, workers.Options{})
	require.Equal(t, []string{"a", "b"}, list(t, r)[0].Labels)
	w.Labels = nil
	require.NoError(t, r.Register(t.Context(), w))
	require.Nil(t, list(t, r)[0].Labels)
	for _, labels := range [][]string{{""}, {strings.Repeat("x", 257)}, make([]string, 101)} {
		w.Labels = labels
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(r.Register(t.Context(), w)))
	}
}

func TestARefusedRegistrationIsLogged(t *testing.T) {
	var logged bytes.Buffer
	r := open(t, newStore(t), workers.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	err := r.Register(t.Context(), persistence.Worker{ID: "far-away", URL: "http://192.0.2.1:9", Services: []string{"s"}})
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err), "%v", err)
	require.Contains(t, logged.String(), "level=WARN")
	require.Contains(t, logged.String(), "worker=far-away")
	require.Contains(t, logged.String(), "192.0.2.1")
	logged.Reset()
	require.Error(t, r.Register(t.Context(), persistence.Worker{ID: strings.Repeat("x", 1<<20), Services: []string{"s"}}))
	require.Less(t, logged.Len(), 2000)
}

func TestServicesOfSilentPushWorkersAreKnown(t *testing.T) {
	var c clock
	c.Store(1000)
	r := open(t, newStore(t), workers.Options{Now: c.Load, OfflineTTL: time.Second})
	require.Empty(t, r.Pushed())
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "b", URL: "http://127.0.0.1:1", Services: []string{"y", "x"}}))
	require.NoError(t, r.Register(t.Context(), persistence.Worker{ID: "a", URL: "attached", Type: "attached", Services: []string{"z"}}))
	c.pass(time.Hour)
	require.Equal(t, []string{"x", "y"}, r.Pushed())
	require.NoError(t, r.Deregister(t.Context(), "b"))
	require.Empty(t, r.Pushed())
}
