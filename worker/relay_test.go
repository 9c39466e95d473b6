package worker_test

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// relay forwards connections to a server.
type relay struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []*relayed
	over     sync.WaitGroup
}

// relayed is a forwarded connection. A forgotten one stays open, but forwards nothing any more, as
// with a firewall that has dropped it.
type relayed struct {
	client, server net.Conn
	forgotten      atomic.Bool
}

// relayTo returns the address of a relay in front of a server.
func relayTo(t *testing.T, server string) (r *relay, address string) {
	u, err := url.Parse(server)
	require.NoError(t, err)
	r = &relay{to: u.Host}
	r.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.over.Go(r.accept)
	t.Cleanup(r.close)
	u.Host = r.listener.Addr().String()
	return r, u.String()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.to)
		if err != nil {
			client.Close()
			continue
		}
		c := &relayed{client: client, server: server}
		r.mu.Lock()
		r.open = append(r.open, c)
		r.mu.Unlock()
		r.over.Go(func() { c.pass(client, server) })
		r.over.Go(func() { c.pass(server, client) })
	}
}

func (c *relayed) pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !c.forgotten.Load() {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	if !c.forgotten.Load() {
		_ = to.Close()
	}
}

// forget stops forwarding on all current connections.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.forgotten.Store(true)
	}
}

func (r *relay) close() {
	r.listener.Close()
	r.mu.Lock()
	for _, c := range r.open {
		c.client.Close()
		c.server.Close()
	}
	r.mu.Unlock()
	r.over.Wait()
}
