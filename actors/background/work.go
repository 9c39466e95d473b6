// Package background runs the work of a member beside its actors: goroutines, timers and waits,
// which all end with the member. A Work is a structure with a lock.
package background

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
)

// Work is the background work of one member. The parts of a member start goroutines, set timers and
// wait only through it. So all work ends with the member, and the simulator can control its order.
type Work struct {
	Clock host.Clock

	host   host.Host
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool           // no more work may start
	running sync.WaitGroup // the work that AwaitEnd waits for
	count   atomic.Int64   // number of pieces of work
}

// New creates the background work of a member on its host, which must have a clock. ctx is the
// parent context of all work.
func New(ctx context.Context, h host.Host) *Work {
	w := &Work{Clock: h.Clock, host: h}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// Context returns the context that ends with the member.
func (w *Work) Context() context.Context { return w.ctx }

// HasEnded reports whether the member has ended.
func (w *Work) HasEnded() bool { return w.ctx.Err() != nil }

// Run starts work that may block. After Close it starts nothing.
func (w *Work) Run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.running.Add(1)
	w.count.Add(1)
	w.host.Run(func() {
		defer w.running.Done()
		defer w.count.Add(-1)
		f()
	})
}

// After runs f after d, unless stop is called before. f must not block.
func (w *Work) After(d time.Duration, f func()) (stop func() bool) { return w.Clock.AfterFunc(d, f) }

// Sleep waits for d. It returns false when the member stops.
func (w *Work) Sleep(d time.Duration) bool {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan struct{})
	stop := w.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	w.Park(func() bool { return host.Closed(done) || ctx.Err() != nil })
	select {
	case <-done:
	case <-ctx.Done():
	}
	return w.ctx.Err() == nil
}

// Park is called before every wait of the member. With the real host it returns at once and the
// wait blocks; the simulator returns when the wait has ended.
func (w *Work) Park(over func() bool) { w.host.Wait(over) }

// WithTimeout returns a context that ends with the member, or after d.
func (w *Work) WithTimeout(d time.Duration) (context.Context, func()) { return w.host.Within(w.ctx, d) }

// storeCallTimeout bounds one call to the store, so that a silently dead connection does not block
// the caller forever.
const storeCallTimeout = 30 * time.Second

// StoreCall returns the context of one call to the store.
func (w *Work) StoreCall() (context.Context, func()) { return w.WithTimeout(storeCallTimeout) }

// DetachedContext returns a context with its own timeout, independent of the end of ctx and of the
// member.
func (w *Work) DetachedContext(ctx context.Context, d time.Duration) (context.Context, func()) {
	return w.host.Within(context.WithoutCancel(ctx), d)
}

// Close prevents further work from starting. It returns false if Close was called before.
func (w *Work) Close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.closed
	w.closed = true
	return first
}

// Cancel ends the context of the member.
func (w *Work) Cancel() { w.cancel() }

// AwaitEnd waits at most d for the running work, which has been canceled. It returns how many
// pieces of work have not ended.
func (w *Work) AwaitEnd(d time.Duration) (left int64) {
	timeUp := make(chan struct{})
	defer w.Clock.AfterFunc(d, func() { close(timeUp) })()
	w.Park(func() bool { return w.count.Load() == 0 || host.Closed(timeUp) })
	ended := make(chan struct{})
	go func() {
		w.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return 0
	case <-timeUp:
		return max(w.count.Load(), 1)
	}
}

// BackOff returns the pause before the nth retry after a crash.
func BackOff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 10), 30*time.Second)
}

// StorePause returns the pause before the nth retry of a store call. It stays at most a second,
// because many tasks wait for few callers and should continue soon after an outage.
func StorePause(n int) time.Duration { return min(BackOff(n), time.Second) }
