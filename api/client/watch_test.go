package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

func TestAnEndedContextEndsAWatch(t *testing.T) {
	c := connect(t, startServer(t, nil).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	started, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Watch(ctx, started.ID, "") {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
	for _, err := range c.Watch(t.Context(), "nope", "") {
		require.Equal(t, "not_found", client.KindOf(err))
	}
}

// cutter cuts connections after a number of bytes, at any place.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		_, _ = c.ResponseWriter.Write(b[:max(len(b)+c.left, 0)])
		c.Flush()
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

func (c *cutter) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func TestAWatchHasNoGapAndNothingTwice(t *testing.T) {
	var connections atomic.Int32
	s := startServer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/stream") {
				w = &cutter{w, 150 + 131*int(connections.Add(1))}
			}
			next.ServeHTTP(w, r)
		})
	})
	c := connect(t, s.base)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := c.Publish(ctx, "slow", []byte(slow))
	require.NoError(t, err)
	started, err := c.Start(ctx, wire.StartRequest{Flow: "slow"})
	require.NoError(t, err)
	var ids []string
	for e, err := range c.Watch(ctx, started.ID, "") {
		require.NoError(t, err)
		ids = append(ids, e.ID)
		if len(ids) == 20 {
			_, err := c.Signal(ctx, started.ID, "stop", json.RawMessage("true"))
			require.NoError(t, err)
		}
	}
	require.Greater(t, connections.Load(), int32(3))
	var want []string
	for e, err := range client.All(func(cursor string) (*wire.Page[wire.Event], error) {
		return c.Events(ctx, started.ID, cursor, 0)
	}) {
		require.NoError(t, err)
		want = append(want, e.ID)
	}
	require.Equal(t, want, ids)
	var rest []string
	for e, err := range c.Watch(ctx, started.ID, want[len(want)-3]) {
		require.NoError(t, err)
		rest = append(rest, e.ID)
	}
	require.Equal(t, want[len(want)-2:], rest)
}

func TestASilentStreamIsReplaced(t *testing.T) {
	var connections atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if connections.Add(1) == 1 {
			_, _ = w.Write([]byte("id: 1.0\ndata: {\"id\":\"1.0\",\"at\":\"2026-01-01T00:00:00.000Z\"}\n\n"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, "id: 1.1\ndata: {\"id\":\"after "+
			"%s\",\"at\":\"2026-01-01T00:00:00.000Z\"}\n\nevent: end\ndata: {}\n\n",
			r.Header.Get("Last-Event-ID"))
	}))
	t.Cleanup(web.Close)
	c := connect(t, web.URL, func(o *client.Options) { o.Silence = 300 * time.Millisecond })
	var ids []string
	for e, err := range c.Watch(t.Context(), "task", "") {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"1.0", "after 1.0"}, ids)
}

func TestAWatchGoesOnBehindTheLastEventAfterAnOutage(t *testing.T) {
	var connections atomic.Int32
	resumed := make(chan string, 2)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const event = "id: %d.0\ndata: {\"id\":\"%[1]d.0\",\"at\":\"2026-01-01T00:00:00.000Z\"}\n\n"
		switch n := connections.Add(1); n {
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 4:
			resumed <- r.Header.Get("Last-Event-ID")
			fmt.Fprintf(w, event+"event: news\ndata: {\"of\":\"a kind that a newer server knows\"}\n\n", 2)
		case 5:
			resumed <- r.Header.Get("Last-Event-ID")
			fmt.Fprint(w, "event: end\ndata: {}\n\n")
		default:
			fmt.Fprintf(w, event+": the store does not answer: trying on\n\n", n)
		}
	}))
	t.Cleanup(web.Close)
	var ids []string
	for e, err := range connect(t, web.URL).Watch(t.Context(), "task", "") {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"1.0", "2.0"}, ids)
	require.Equal(t, []string{"1.0", "2.0"}, []string{<-resumed, <-resumed})
}
