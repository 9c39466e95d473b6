package gossip

import (
	"context"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// gossipTransport is the library's transport with two limits. It serves at most maxStreams incoming
// connections at once, and all connections end with gossip.
type gossipTransport struct {
	*memberlist.NetTransport
	ctx     context.Context
	work    sync.WaitGroup
	streams chan net.Conn
	places  chan struct{}
}

// maxStreams is the number of incoming connections served at once. Members rarely need them.
const maxStreams = 256

func openTransport(ctx context.Context, host string, port int) (*gossipTransport, error) {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{host}, BindPort: port, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return nil, err
	}
	t := &gossipTransport{NetTransport: inner, ctx: ctx, streams: make(chan net.Conn), places: make(chan struct{}, maxStreams)}
	t.work.Go(t.acceptStreams)
	return t, nil
}

// acceptStreams passes incoming connections to the library.
func (t *gossipTransport) acceptStreams() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			select {
			case t.places <- struct{}{}:
				t.passStream(t.trackConn(conn, func() { <-t.places }))
			default:
				conn.Close()
			}
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *gossipTransport) passStream(conn net.Conn) {
	select {
	case t.streams <- conn:
	case <-t.ctx.Done():
		conn.Close()
	}
}

func (t *gossipTransport) StreamCh() <-chan net.Conn { return t.streams }

// DialAddressTimeout connects to another member for the library.
func (t *gossipTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(t.ctx, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	return t.trackConn(conn, func() {}), nil
}

// Shutdown waits for the listeners, and closes connections that they still pass on.
func (t *gossipTransport) Shutdown() error {
	done := make(chan struct{})
	t.work.Go(func() { t.closeIncoming(done) })
	err := t.NetTransport.Shutdown()
	close(done)
	t.work.Wait()
	return err
}

func (t *gossipTransport) closeIncoming(done chan struct{}) {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			conn.Close()
		case <-t.PacketCh():
		case <-done:
			return
		}
	}
}

// trackConn returns a connection that ends with gossip. It calls after when the connection is
// closed.
func (t *gossipTransport) trackConn(conn net.Conn, after func()) net.Conn {
	c := &trackedConn{Conn: conn}
	c.close = sync.OnceValue(func() error {
		after()
		return conn.Close()
	})
	c.forget = context.AfterFunc(t.ctx, func() { c.close() })
	return c
}

type trackedConn struct {
	net.Conn
	close  func() error
	forget func() bool
}

func (c *trackedConn) Close() error {
	c.forget()
	return c.close()
}
