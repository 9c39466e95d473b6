package api

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// limitedListener is a listener that keeps the number of open connections below a bound, so that
// there are file descriptors left for all else. When there are as many, a new one takes the place
// of the one that has been quiet for longest: that has sent no whole request yet, or none since it
// was answered. While all of them are at work the new one waits.
type limitedListener struct {
	net.Listener
	most int

	mu     sync.Mutex
	change sync.Cond // a connection was closed or became quiet, or the listener was closed
	open   int
	quiet  list.List // of *connection, the longest quiet first
	closed bool
}

// mostConnections is a bound where the system has none for file descriptors.
const mostConnections = 1 << 20

func newConnections(l net.Listener, most int) *limitedListener {
	c := &limitedListener{Listener: l, most: cmp.Or(most, max(fileLimit()/2, 1))}
	c.change.L = &c.mu
	return c
}

// boundedConn leaves the books when it is closed, whoever closes it.
type boundedConn struct {
	net.Conn
	all        *limitedListener
	quietEntry *list.Element // among the quiet ones; nil = at work
	closed     bool
}

// Accept waits for a connection, and for room for it.
func (c *limitedListener) Accept() (net.Conn, error) {
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
		_ = raw.Close() // nobody is served any longer
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

// Close lets nobody wait any longer.
func (c *limitedListener) Close() error {
	c.mu.Lock()
	c.closed = true
	c.change.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// onConnState hears of the states of connections.
func (c *limitedListener) onConnState(conn net.Conn, state http.ConnState) {
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
	case k.closed: // its server has yet to notice
	case state == http.StateIdle && k.quietEntry == nil:
		k.quietEntry = c.quiet.PushBack(k)
		c.change.Broadcast()
	case state == http.StateActive || state == http.StateHijacked:
		c.markBusy(k)
	}
}

func (c *limitedListener) markBusy(k *boundedConn) {
	if k.quietEntry != nil {
		c.quiet.Remove(k.quietEntry)
		k.quietEntry = nil
	}
}

// removeConn closes a connection. The lock is held.
func (c *limitedListener) removeConn(k *boundedConn) error {
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

// CloseWrite lets the last answer arrive before the connection is closed.
func (k *boundedConn) CloseWrite() error {
	if half, ok := k.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
