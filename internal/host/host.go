// Package host is what work stands on: how it is done in the background, how it waits, and what
// tells it the time. The zero Host is the real one; the simulator brings its own, and then nothing
// happens that it has not picked.
//
// Promises: whoever waits for a channel says before, to Park, when the wait will be over; what Go,
// Later and a Group run may block, what AfterFunc calls may not.
package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Host is what everything of one member stands on.
type Host struct {
	// Go runs work that may block. nil = in a goroutine.
	Go func(func())
	// Clock tells the time. nil = the real one.
	Clock Clock
	// Park is called before a wait, with what says that it is over. nil = nothing: waits block.
	Park func(over func() bool)
}

// Clock is monotonic; it says how much time has passed, not what time it is.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Now is the time by the clock.
func (h *Host) Now() time.Time {
	if h.Clock == nil {
		return time.Now()
	}
	return h.Clock.Now()
}

// AfterFunc calls what does not block in a while.
func (h *Host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if h.Clock == nil {
		return time.AfterFunc(d, f).Stop
	}
	return h.Clock.AfterFunc(d, f)
}

// Later runs what may block in a while.
func (h *Host) Later(d time.Duration, f func()) (stop func() bool) {
	return h.AfterFunc(d, func() { h.startGo(f) })
}

// Timer is over after a while.
func (h *Host) Timer(d time.Duration) (over <-chan struct{}, stop func() bool) {
	done := make(chan struct{})
	return done, h.AfterFunc(d, func() { close(done) })
}

// Within bounds how long a context lasts. By the real clock it has a deadline, which travels with
// questions.
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

// Wait says that whoever calls it waits until over.
func (h *Host) Wait(over func() bool) {
	if h.Park != nil {
		h.Park(over)
	}
}

func (h *Host) startGo(f func()) {
	if h.Go == nil {
		go f()
		return
	}
	h.Go(f)
}

// Closed reports whether a channel without values is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Group is work of a host that is waited for.
type Group struct {
	Host  *Host
	all   sync.WaitGroup
	count atomic.Int64
}

// Run has work done that may block.
func (g *Group) Run(f func()) {
	g.all.Add(1)
	g.count.Add(1)
	g.Host.startGo(func() {
		defer g.all.Done()
		defer g.count.Add(-1)
		f()
	})
}

// Wait ends when all of it is done.
func (g *Group) Wait() {
	g.Host.Wait(func() bool { return g.count.Load() == 0 })
	g.all.Wait()
}
