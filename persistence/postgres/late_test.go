package postgres_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// detour forwards connections to a server and can hold up what clients send, like a network, or a
// host that freezes while it sends.
type detour struct {
	t    *testing.T
	to   string
	open sync.WaitGroup

	mu     sync.Mutex
	freed  chan struct{} // closed while nothing is held up
	caught chan struct{} // holds a token while something is held up
}

func newDetour(t *testing.T, dsn string) (d *detour, through string) {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d = &detour{t: t, to: u.Host, freed: make(chan struct{}), caught: make(chan struct{}, 1)}
	close(d.freed)
	d.open.Go(func() { d.accept(l) })
	t.Cleanup(func() {
		_ = l.Close()
		d.open.Wait()
	})
	u.Host = l.Addr().String()
	return d, u.String()
}

func (d *detour) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", d.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		d.open.Go(func() { d.pass(client, server) })
		d.open.Go(func() {
			_, _ = io.Copy(client, server) // until either side closes
			_ = client.Close()
		})
	}
}

// pass forwards what a client sends, unless it is held up.
func (d *detour) pass(client, server net.Conn) {
	defer server.Close()
	for buffer := make([]byte, 64<<10); ; {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		d.mu.Lock()
		freed := d.freed
		d.mu.Unlock()
		select {
		case <-freed:
		default:
			select {
			case d.caught <- struct{}{}:
			default: // something else is held up, too
			}
			<-freed
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// hold holds up everything sent from now on, until let is called.
func (d *detour) hold() (let func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	freed := make(chan struct{})
	d.freed = freed
	return sync.OnceFunc(func() { close(freed) })
}

func TestABatchInFlightWhenItsMemberIsFencedWritesNothing(t *testing.T) {
	for name, batch := range shapesOfBatches {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			d, through := newDetour(t, dsn)
			s, me := joined(t, through)
			other := openAt(t, dsn)
			defer other.Close()
			ctx := t.Context()
			_, err := s.Renew(ctx, me, time.Millisecond)
			require.NoError(t, err)
			let := d.hold()
			defer let()
			var late sync.WaitGroup
			late.Go(func() {
				_, err := s.Commit(ctx, me, batch)
				require.ErrorIs(t, err, persistence.ErrFenced)
			})
			<-d.caught
			require.Eventually(t, func() bool {
				fenced, err := other.Fence(ctx, me)
				require.NoError(t, err)
				return fenced
			}, time.Minute, time.Millisecond)
			taken, err := other.Load(ctx, []string{"a"}) // by the current owner of the task
			require.NoError(t, err)
			let()
			late.Wait()
			records, err := other.Load(ctx, []string{"a"})
			require.NoError(t, err)
			require.Equal(t, taken, records)
		})
	}
}
