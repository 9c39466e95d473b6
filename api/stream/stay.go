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
)

// Departure is how a server leaves: who stays long hears of it, and is waited for. HTTP's own
// shutdown knows nothing of connections that have become something else.
type Departure struct {
	leaving context.Context // ends when the server begins to leave
	mu      sync.Mutex
	closed  bool // nobody may stay any longer
	stays   sync.WaitGroup
}

// NewDeparture is that of a server which begins to leave when begun ends.
func NewDeparture(begun context.Context) *Departure { return &Departure{leaving: begun} }

// With has the requests of a context be those of a server.
func (d *Departure) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, departureKey{}, d)
}

// tryJoin is false when it is too late to stay.
func (d *Departure) tryJoin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.stays.Add(1)
	}
	return !d.closed
}

// Wait returns when nobody stays any longer, or ctx ends.
func (d *Departure) Wait(ctx context.Context) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	gone := make(chan struct{})
	go func() { // ends with the last who stays
		d.stays.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// OnStay has f called when the request of a context stays.
func OnStay(ctx context.Context, f func()) context.Context {
	before, _ := ctx.Value(onStayKey{}).(func())
	return context.WithValue(ctx, onStayKey{}, func() {
		if before != nil {
			before()
		}
		f()
	})
}

// Stay is for long polls and streams: it lifts the server's time limits from this request and gives
// a context that also ends when the server begins to leave, so that nobody keeps it up. The server
// waits for the function to be called.
func Stay(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	rc := http.NewResponseController(w)
	// Only connections without deadlines (a test's recorder) refuse, and those need no lifting.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	if lift, ok := r.Context().Value(onStayKey{}).(func()); ok {
		lift()
	}
	ctx, cancel := context.WithCancel(r.Context())
	d, ok := r.Context().Value(departureKey{}).(*Departure)
	if !ok {
		return ctx, cancel
	}
	if !d.tryJoin() {
		cancel()
		return ctx, cancel
	}
	stop := context.AfterFunc(d.leaving, cancel)
	return ctx, sync.OnceFunc(func() {
		stop()
		cancel()
		d.stays.Done()
	})
}
