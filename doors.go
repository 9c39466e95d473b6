package troupe

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// lifeListener is a listener for one life of a member. A member that begins anew answers where it
// did before, so closing a door keeps the address open if keepOpen reports true: connections that
// come until the next door wait.
type lifeListener struct {
	net.Listener
	keepOpen func() bool
	closed   atomic.Bool
}

// deadlineListener is a listener whose Accept ends at a deadline, as those of TCP do.
type deadlineListener interface{ SetDeadline(time.Time) error }

// openDoor returns the next door at an address. A listener that was closed meanwhile says so when
// Accept is called.
func openDoor(l net.Listener, keepOpen func() bool) *lifeListener {
	if i, ok := l.(deadlineListener); ok {
		_ = i.SetDeadline(time.Time{})
	}
	return &lifeListener{Listener: l, keepOpen: keepOpen}
}

// Accept returns net.ErrClosed once the door is closed.
func (d *lifeListener) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil && d.closed.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close ends Accept. It closes the address as well, unless the address stays open for the next
// door.
func (d *lifeListener) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	if i, ok := d.Listener.(deadlineListener); ok && d.keepOpen() {
		return i.SetDeadline(time.Now())
	}
	return d.Listener.Close()
}
