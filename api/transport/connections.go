// Package transport serves the HTTP server of a member with connections: a bound on their number,
// and TLS with certificates that are reloaded from changed files.
package transport

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// LimitedListener is a listener that bounds the number of open connections, so that file
// descriptors are left for everything else. At the limit, a new connection replaces the connection
// that has been quiet for longest. A connection is quiet until it has sent a whole request, and
// again after each answer. While all connections are busy, the new one waits.
type LimitedListener struct {
	net.Listener
	most int

	mu sync.Mutex
	// signals that a connection was closed or became quiet, or that the listener was closed
	change sync.Cond
	open   int
	quiet  list.List // of *boundedConn, the longest quiet first
	closed bool
}

// mostConnections is the limit where the system has none for file descriptors.
const mostConnections = 1 << 20

// LimitConnections returns a listener with at most so many open connections; 0 = half of the file
// descriptors.
func LimitConnections(l net.Listener, most int) *LimitedListener {
	c := &LimitedListener{Listener: l, most: cmp.Or(most, max(fileLimit()/2, 1))}
	c.change.L = &c.mu
	return c
}

// boundedConn is a connection that stops counting when it is closed, by either side.
type boundedConn struct {
	net.Conn
	all        *LimitedListener
	quietEntry *list.Element // entry in the list of quiet connections; nil while busy
	closed     bool
}

// Accept waits for a connection, and until the limit allows it.
func (c *LimitedListener) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open >= c.most && c.quiet.Len() == 0 && !c.closed {
		c.change.Wait()
	}
	if c.closed {
		_ = raw.Close() // the server accepts no more connections
		return nil, net.ErrClosed
	}
	if c.open >= c.most {
		c.removeConn(c.quiet.Front().Value.(*boundedConn))
	}
	c.open++
	conn := &boundedConn{Conn: raw, all: c}
	conn.quietEntry = c.quiet.PushBack(conn)
	return conn, nil
}

// Close closes the listener and wakes every waiting Accept.
func (c *LimitedListener) Close() error {
	c.mu.Lock()
	c.closed = true
	c.change.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// TrackState tracks which connections are quiet.
func (c *LimitedListener) TrackState(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	k, ok := conn.(*boundedConn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.closed: // the HTTP server has not noticed yet
	case state == http.StateIdle && k.quietEntry == nil:
		k.quietEntry = c.quiet.PushBack(k)
		c.change.Broadcast()
	case state == http.StateActive || state == http.StateHijacked:
		c.markBusy(k)
	}
}

func (c *LimitedListener) markBusy(k *boundedConn) {
	if k.quietEntry != nil {
		c.quiet.Remove(k.quietEntry)
		k.quietEntry = nil
	}
}

// removeConn closes a connection. The caller holds the lock.
func (c *LimitedListener) removeConn(k *boundedConn) error {
	if k.closed {
		return nil
	}
	k.closed = true
	c.markBusy(k)
	c.open--
	c.change.Broadcast()
	return k.Conn.Close()
}

func (k *boundedConn) Close() error {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	return k.all.removeConn(k)
}

// CloseWrite closes the sending side, so that the last answer arrives before the connection is
// closed.
func (k *boundedConn) CloseWrite() error {
	if half, ok := k.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
