package stream

import (
	"context"
	"net/http"
	"sync"
	"time"
)

type (
	departureKey struct{}
	onStayKey    struct{}
	onLeaveKey   struct{}
)

// Departure coordinates the stop of a server. It notifies requests that stay and waits for them.
// The shutdown of net/http does not include hijacked connections.
type Departure struct {
	leaving context.Context // ends when the server begins to stop
	mu      sync.Mutex
	closed  bool // no further request may stay
	stays   sync.WaitGroup
}

// NewDeparture returns the Departure of a server that begins to stop when begun ends.
func NewDeparture(begun context.Context) *Departure { return &Departure{leaving: begun} }

// With returns a context for requests of this server.
func (d *Departure) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, departureKey{}, d)
}

// tryJoin reports whether a request may stay, and counts it.
func (d *Departure) tryJoin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.stays.Add(1)
	}
	return !d.closed
}

// Wait waits until no request stays, or ctx ends. No further request may stay afterwards.
func (d *Departure) Wait(ctx context.Context) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	gone := make(chan struct{})
	go func() { // ends when the last request leaves
		d.stays.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// OnStay returns a context that calls f when its request begins to stay.
func OnStay(ctx context.Context, f func()) context.Context {
	before, _ := ctx.Value(onStayKey{}).(func())
	return context.WithValue(ctx, onStayKey{}, func() {
		if before != nil {
			before()
		}
		f()
	})
}

// OnLeave returns a context that calls f when its request no longer stays.
func OnLeave(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, onLeaveKey{}, f)
}

// Stay makes a request a long poll or stream. It lifts the time limits of the request. The returned
// context also ends when the server begins to stop. The server waits until the returned function is
// called, which restores the time limits.
func Stay(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	rc := http.NewResponseController(w)
	// Only connections without deadlines, as in tests, return an error. They need no change.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	if lift, ok := r.Context().Value(onStayKey{}).(func()); ok {
		lift()
	}
	ctx, cancel := context.WithCancel(r.Context())
	leave := func() {
		cancel()
		if limit, ok := r.Context().Value(onLeaveKey{}).(func()); ok {
			limit()
		}
	}
	d, ok := r.Context().Value(departureKey{}).(*Departure)
	if !ok {
		return ctx, sync.OnceFunc(leave)
	}
	if !d.tryJoin() {
		cancel()
		return ctx, sync.OnceFunc(leave)
	}
	stop := context.AfterFunc(d.leaving, cancel)
	return ctx, sync.OnceFunc(func() {
		stop()
		leave()
		d.stays.Done()
	})
}
