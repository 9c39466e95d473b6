package client_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/ports"
)

// full answers some requests like a full server, one that stops, or a proxy without a server.
func full(times int32, answers ...func(http.ResponseWriter)) (func(http.Handler) http.Handler, *atomic.Int32) {
	var seen atomic.Int32
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := seen.Add(1); n <= times {
				answers[int(n-1)%len(answers)](w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, &seen
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write([]byte(`{"title":"Too Many Requests","status":429,"code":"busy","message":"full"}`))
}

func leaving(w http.ResponseWriter) { http.Error(w, "no server", http.StatusServiceUnavailable) }

func broken(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func TestRepeatableRequestsAreRetried(t *testing.T) {
	inFront, seen := full(3, busy, leaving, broken)
	c := connect(t, startServer(t, inFront).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	require.EqualValues(t, 4, seen.Load())
	for name, do := range map[string]func() error{
		"a start with a key": func() error {
			_, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits", IdempotencyKey: "k"})
			return err
		},
		"a start without": func() error { _, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"}); return err },
		"reading":         func() error { _, err := c.Flow(t.Context(), "waits"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			seen.Store(0)
			require.NoError(t, do())
			require.EqualValues(t, 4, seen.Load())
		})
	}
	started, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"})
	require.NoError(t, err)
	seen.Store(0)
	_, err = c.Signal(t.Context(), started.ID, "other", nil)
	require.NoError(t, err)
	require.EqualValues(t, 4, seen.Load())
	events, err := c.Events(t.Context(), started.ID, "", 100)
	require.NoError(t, err)
	signals := 0
	for _, e := range events.Items {
		if e.Type == "signal_received" {
			signals++
		}
	}
	require.Equal(t, 1, signals)
}

func TestACommandIsNamedByItsContext(t *testing.T) {
	c := connect(t, startServer(t, nil).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	started, err := c.Start(t.Context(), wire.StartRequest{Flow: "waits"})
	require.NoError(t, err)
	ctx := client.WithRequest(t.Context(), "the same")
	for range 2 {
		_, err = c.Pause(ctx, started.ID)
		require.NoError(t, err)
	}
	_, err = c.Pause(t.Context(), started.ID)
	require.Equal(t, "conflict", client.KindOf(err), "a pause of its own")
}

func TestAnUnreachableServerIsTriedAgain(t *testing.T) {
	address, err := ports.FreeAddress()
	require.NoError(t, err)
	tried, first := make(chan struct{}), sync.Once{}
	c := connect(t, "http://"+address, func(o *client.Options) {
		o.Retries = 1000
		o.HTTPClient.Transport = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				first.Do(func() { close(tried) })
			}
			return conn, err
		}}
	})
	answers := make(chan error, 1)
	go func() {
		_, err := c.Info(t.Context())
		answers <- err
	}()
	<-tried
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(`{"member":"late"}`))
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	require.NoError(t, <-answers)
}

func TestAClientGivesUp(t *testing.T) {
	inFront, seen := full(1000, busy)
	s := startServer(t, inFront)
	c := connect(t, s.base, func(o *client.Options) { o.Retries = 2 })
	_, err := c.Info(t.Context())
	require.Equal(t, "busy", client.KindOf(err))
	require.EqualValues(t, 3, seen.Load())
	never := connect(t, s.base, func(o *client.Options) { o.Retries = -1 })
	_, err = never.Info(t.Context())
	require.Error(t, err)
	require.EqualValues(t, 4, seen.Load())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = connect(t, s.base).Info(ctx)
	require.Error(t, err)
	require.Less(t, time.Since(began), time.Minute)
}
