package troupe

import (
	"net"
	"sync"
)

// doors are listeners one after the other at one address: a member that begins anew goes on to answer where it did. What connects
// while none of them is open waits.
type doors struct {
	l        net.Listener
	arrivals chan arrival
	closed   chan struct{}
	work     sync.WaitGroup
}

// arrival is what the listener has answered.
type arrival struct {
	conn net.Conn
	err  error
}

// newDoors accepts connections until close, or until the listener is closed.
func newDoors(l net.Listener) *doors {
	d := &doors{l: l, arrivals: make(chan arrival), closed: make(chan struct{})}
	d.work.Go(d.accept)
	return d
}

// accept passes everything on: whoever serves decides which errors are only for a moment.
func (d *doors) accept() {
	for {
		conn, err := d.l.Accept()
		select {
		case d.arrivals <- arrival{conn, err}:
		case <-d.closed:
			if err == nil {
				_ = conn.Close() // nobody is served any longer
			}
			return
		}
	}
}

// close ends the listening.
func (d *doors) close() {
	close(d.closed)
	_ = d.l.Close() // it may be closed already
	d.work.Wait()
}

// open returns the next listener. Closing it leaves the address open.
func (d *doors) open() net.Listener { return &door{doors: d, shut: make(chan struct{})} }

// door is one of them.
type door struct {
	*doors
	once sync.Once
	shut chan struct{}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case <-d.shut:
		return nil, net.ErrClosed
	default:
	}
	select {
	case a := <-d.arrivals:
		return a.conn, a.err
	case <-d.shut:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.shut) })
	return nil
}

func (d *door) Addr() net.Addr { return d.l.Addr() }
