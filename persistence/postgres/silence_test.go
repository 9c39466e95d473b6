package postgres_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// hole forwards connections to a server and can swallow everything. Connections that are open or
// being opened then never get a response again.
type hole struct {
	to    string
	open  sync.WaitGroup
	deaf  atomic.Bool
	age   atomic.Int64 // connections of an earlier age are deaf forever
	mu    sync.Mutex
	conns []net.Conn
}

func newHole(t *testing.T, dsn string) (h *hole, through string) {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h = &hole{to: u.Host}
	h.open.Go(func() { h.accept(l) })
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.open.Wait()
	})
	u.Host = l.Addr().String()
	return h, u.String()
}

func (h *hole) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		h.keep(client)
		if h.deaf.Load() {
			continue
		}
		server, err := net.Dial("tcp", h.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		h.keep(server)
		age := h.age.Load()
		h.open.Go(func() { h.pass(age, client, server) })
		h.open.Go(func() { h.pass(age, server, client) })
	}
}

func (h *hole) keep(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
}

// pass forwards data until some is swallowed, and nothing after that.
func (h *hole) pass(age int64, from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if h.deaf.Load() || h.age.Load() != age {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// lease returns a member's lease over a hole, and a function that renews it with the timeout of a
// lease of 2 s.
func lease(t *testing.T) (h *hole, renew func() error) {
	h, through := newHole(t, pgtest.DSN(t))
	s, me := joined(t, through)
	return h, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
		defer cancel()
		_, err := s.Renew(ctx, me, time.Hour)
		return err
	}
}

// A connection attempt during a network outage would wait as long as the driver allows: two
// minutes, and leases have no other connection meanwhile.
func TestALeaseIsRenewedSoonAfterASilenceOfTheNetwork(t *testing.T) {
	t.Parallel()
	h, renew := lease(t)
	require.NoError(t, renew())
	h.deaf.Store(true)
	// Long enough for the driver to give up the earlier connections and make new ones.
	for begun := time.Now(); time.Since(begun) < 20*time.Second; {
		require.Error(t, renew())
	}
	h.deaf.Store(false)
	require.Eventually(t, func() bool { return renew() == nil }, 15*time.Second, 10*time.Millisecond)
}

// The driver takes up to 15 s to close a dead connection.
func TestALeaseOutlivesItsConnectionThatDiesInSilence(t *testing.T) {
	h, renew := lease(t)
	require.NoError(t, renew())
	h.age.Add(1)
	require.Error(t, renew())
	require.NoError(t, renew())
}

func TestADeadIdleConnectionDelaysRequestsOnlyBriefly(t *testing.T) {
	t.Parallel()
	h, through := newHole(t, pgtest.DSN(t))
	s, _ := joined(t, through)
	h.age.Add(1)
	time.Sleep(1100 * time.Millisecond) // after a second it counts as idle
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.Task(ctx, "a")
	require.NoError(t, err)
}
