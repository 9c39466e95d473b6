package api

import (
	"context"
	"net/http"
	"sync"
	"time"
)

type leavingKey struct{}

// departure is how a server leaves: who stays long hears of it, and is waited for. HTTP's own shutdown
// knows nothing of connections that have become something else.
type departure struct {
	begun context.Context // ends when the server begins to leave
	mu    sync.Mutex
	over  bool // nobody may stay any longer
	stays sync.WaitGroup
}

// join is false when it is too late to stay.
func (d *departure) join() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		d.stays.Add(1)
	}
	return !d.over
}

// wait returns when nobody stays any longer, or ctx ends.
func (d *departure) wait(ctx context.Context) {
	d.mu.Lock()
	d.over = true
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

type limitKey struct{}

// timed ends what a request waits for before its connection is cut off: a store that hangs becomes an
// answer. The limit is a timer, because a deadline could not be lifted by Stay.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		limit := time.AfterFunc(s.cfg.ReadTimeout, cancel)
		defer limit.Stop()
		timed := r.WithContext(context.WithValue(ctx, limitKey{}, limit))
		defer func() { r.Pattern = timed.Pattern }() // logs and metrics ask the outer request for its route
		next.ServeHTTP(w, timed)
	})
}

// Stay is for long polls and streams: it lifts the server's time limits from this request and
// gives a context that also ends when the server begins to leave, so that nobody keeps it up. The server waits
// for the function to be called.
func Stay(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	rc := http.NewResponseController(w)
	// Only connections without deadlines (a test's recorder) refuse, and those need no lifting.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	if limit, ok := r.Context().Value(limitKey{}).(*time.Timer); ok {
		limit.Stop()
	}
	if leave, ok := r.Context().Value(leaveKey{}).(func()); ok {
		leave() // what it has sent has been read
	}
	ctx, cancel := context.WithCancel(r.Context())
	d, ok := r.Context().Value(leavingKey{}).(*departure)
	if !ok {
		return ctx, cancel
	}
	if !d.join() {
		cancel()
		return ctx, cancel
	}
	stop := context.AfterFunc(d.begun, cancel)
	return ctx, sync.OnceFunc(func() {
		stop()
		cancel()
		d.stays.Done()
	})
}
