package troupe

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// lifeListener is a listener for one life of a member. A member that starts again answers at the
// same address, so closing a lifeListener keeps the address open if keepOpen reports true: new
// connections wait for the next one.
type lifeListener struct {
	net.Listener
	keepOpen func() bool
	closed   atomic.Bool
}

// deadlineListener is a listener whose Accept ends at a deadline, like those of TCP.
type deadlineListener interface{ SetDeadline(time.Time) error }

// openDoor returns the next lifeListener at an address. If l was closed meanwhile, Accept reports
// it.
func openDoor(l net.Listener, keepOpen func() bool) *lifeListener {
	if i, ok := l.(deadlineListener); ok {
		_ = i.SetDeadline(time.Time{})
	}
	return &lifeListener{Listener: l, keepOpen: keepOpen}
}

// Accept returns net.ErrClosed after Close.
func (d *lifeListener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil && d.closed.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close ends Accept. It also closes the address, unless keepOpen reports true.
func (d *lifeListener) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	if i, ok := d.Listener.(deadlineListener); ok && d.keepOpen() {
		return i.SetDeadline(time.Now())
	}
	return d.Listener.Close()
}
