// Package transport provides connections for the HTTP server of a member: a limit on their number,
// and TLS with certificates that are reloaded.
package transport

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// LimitedListener is a listener that bounds the number of open connections, so that enough file
// descriptors remain. At the limit, a new connection replaces the one that has been quiet for
// longest. A connection is quiet until it has sent a whole request, and after each answer. While
// all connections are busy, the new one waits.
type LimitedListener struct {
	net.Listener
	most int

	mu sync.Mutex
	// signals that a connection was closed or became quiet, or the listener was closed
	change sync.Cond
	open   int
	quiet  list.List // quiet connections of type *boundedConn, longest quiet first
	closed bool
}

// mostConnections is the limit if the system has no limit for file descriptors.
const mostConnections = 1 << 20

// LimitConnections returns a listener with at most the given number of open connections. 0 means
// half of the file descriptors.
func LimitConnections(l net.Listener, most int) *LimitedListener {
	c := &LimitedListener{Listener: l, most: cmp.Or(most, max(fileLimit()/2, 1))}
	c.change.L = &c.mu
	return c
}

// boundedConn is a counted connection. It no longer counts when either side has closed it.
type boundedConn struct {
	net.Conn
	all        *LimitedListener
	quietEntry *list.Element // entry in the list of quiet connections; nil while busy
	closed     bool
}

// Accept waits for a connection, and until the limit allows another one.
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

// TrackState records whether a connection is quiet. It is the ConnState hook of the HTTP server.
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

// removeConn closes a connection and stops counting it. The caller holds the lock.
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

// CloseWrite closes the sending side, so that the client gets the last answer before the connection
// closes.
func (k *boundedConn) CloseWrite() error {
	if half, ok := k.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
