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

	"github.com/troupe-engine/troupe/internal/pgtest"
)

// hole is a way to a server that swallows everything at times: whatever was connected then, or
// tried to be, is never answered again.
type hole struct {
	to    string
	open  sync.WaitGroup
	deaf  atomic.Bool
	age   atomic.Int64 // connections of an age before are deaf for ever
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

// pass passes on what comes until something is swallowed, and then nothing any more.
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

// lease is a member's over a hole, and how it is renewed: with the patience that one has whose
// lease lives for 2 s.
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

// A connection that is being made when nothing arrives would wait for as long as the driver lets
// it: two minutes, and leases have no other meanwhile.
func TestALeaseIsRenewedSoonAfterASilenceOfTheNetwork(t *testing.T) {
	t.Parallel()
	h, renew := lease(t)
	require.NoError(t, renew())
	h.deaf.Store(true)
	// As long as it takes until the driver has given up those of before, and makes new ones.
	for begun := time.Now(); time.Since(begun) < 20*time.Second; {
		require.Error(t, renew())
	}
	h.deaf.Store(false)
	require.Eventually(t, func() bool { return renew() == nil }, 15*time.Second, 10*time.Millisecond)
}

// The driver sees a connection that has died off for 15 s.
func TestALeaseOutlivesItsConnectionThatDiesInSilence(t *testing.T) {
	h, renew := lease(t)
	require.NoError(t, renew())
	h.age.Add(1)
	require.Error(t, renew())
	require.NoError(t, renew())
}

func TestAnIdleConnectionThatDiedInSilenceHoldsUpNobodyForLong(t *testing.T) {
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
