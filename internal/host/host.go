// Package host provides the background work, waits and clock of a member. The zero Host uses
// goroutines and the real clock. The simulator replaces them, so that nothing happens except what
// it has chosen.
//
// Promises: before a goroutine waits for a channel, it passes Park the condition for the end of the
// wait. Functions run by Run, Later and a Group may block; functions called by AfterFunc may not.
package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Host is the environment of one member.
type Host struct {
	// Go runs work that may block; nil means in a goroutine.
	Go func(func())
	// Clock returns the time; nil means the real clock.
	Clock Clock
	// Park is called before a wait, with a function that reports whether the wait is over; nil
	// means that waits simply block.
	Park func(over func() bool)
}

// Clock is a monotonic clock. It measures elapsed time, not the time of day.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Now returns the time of the clock.
func (h *Host) Now() time.Time {
	if h.Clock == nil {
		return time.Now()
	}
	return h.Clock.Now()
}

// AfterFunc calls f after d. The function must not block.
func (h *Host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if h.Clock == nil {
		return time.AfterFunc(d, f).Stop
	}
	return h.Clock.AfterFunc(d, f)
}

// Later runs f after d. The function may block.
func (h *Host) Later(d time.Duration, f func()) (stop func() bool) {
	return h.AfterFunc(d, func() { h.Run(f) })
}

// Timer returns a channel that is closed after d.
func (h *Host) Timer(d time.Duration) (over <-chan struct{}, stop func() bool) {
	done := make(chan struct{})
	return done, h.AfterFunc(d, func() { close(done) })
}

// Within returns a context that ends after d. With the real clock it has a deadline, which is
// passed on in requests.
func (h *Host) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if h.Clock == nil {
		return context.WithTimeout(ctx, d)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := h.Clock.AfterFunc(d, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Wait announces that the caller waits until over returns true.
func (h *Host) Wait(over func() bool) {
	if h.Park != nil {
		h.Park(over)
	}
}

// Run runs f, which may block.
func (h *Host) Run(f func()) {
	if h.Go == nil {
		go f()
		return
	}
	h.Go(f)
}

// Closed reports whether a channel without values is closed. A nil channel never is.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Group is background work of a host that can be waited for.
type Group struct {
	Host  *Host
	all   sync.WaitGroup
	count atomic.Int64
}

// Run runs f, which may block.
func (g *Group) Run(f func()) {
	g.all.Add(1)
	g.count.Add(1)
	g.Host.Run(func() {
		defer g.all.Done()
		defer g.count.Add(-1)
		f()
	})
}

// Wait returns when all work of the group is done.
func (g *Group) Wait() {
	g.Host.Wait(func() bool { return g.count.Load() == 0 })
	g.all.Wait()
}
