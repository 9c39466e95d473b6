package troupe

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// door is a listener for one life of a member. A member that begins anew answers where it did before, so closing a door keeps
// the address open if keepOpen reports true: connections that come until the next door wait.
type door struct {
	net.Listener
	keepOpen func() bool
	shut     atomic.Bool
}

// interruptible is a listener whose Accept ends at a deadline, as those of TCP do.
type interruptible interface{ SetDeadline(time.Time) error }

// openDoor returns the next door at an address. A listener that was closed meanwhile says so when Accept is called.
func openDoor(l net.Listener, keepOpen func() bool) *door {
	if i, ok := l.(interruptible); ok {
		_ = i.SetDeadline(time.Time{})
	}
	return &door{Listener: l, keepOpen: keepOpen}
}

// Accept returns net.ErrClosed once the door is closed.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil && d.shut.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close ends Accept. It closes the address as well, unless the address stays open for the next door.
func (d *door) Close() error {
	if d.shut.Swap(true) {
		return nil
	}
	if i, ok := d.Listener.(interruptible); ok && d.keepOpen() {
		return i.SetDeadline(time.Now())
	}
	return d.Listener.Close()
}
