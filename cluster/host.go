package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Host is what a keeper and a router stand on: how work is done beside them, and the clock. The zero value is the real
// one; the simulator brings its own.
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

func (h *Host) now() time.Time {
	if h.Clock == nil {
		return time.Now()
	}
	return h.Clock.Now()
}

// timer is over after a while.
func (h *Host) timer(d time.Duration) (over <-chan struct{}, stop func() bool) {
	done := make(chan struct{})
	if h.Clock == nil {
		return done, time.AfterFunc(d, func() { close(done) }).Stop
	}
	return done, h.Clock.AfterFunc(d, func() { close(done) })
}

// within bounds how long a context lasts. By the real clock it has a deadline, which travels with questions.
func (h *Host) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
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

func (h *Host) park(over func() bool) {
	if h.Park != nil {
		h.Park(over)
	}
}

// closed says whether a channel without values is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// group is work of a host that is waited for.
type group struct {
	host  *Host
	all   sync.WaitGroup
	count atomic.Int64
}

func (g *group) run(f func()) {
	g.all.Add(1)
	g.count.Add(1)
	work := func() {
		defer g.all.Done()
		defer g.count.Add(-1)
		f()
	}
	if g.host.Go == nil {
		go work()
		return
	}
	g.host.Go(work)
}

func (g *group) wait() {
	g.host.park(func() bool { return g.count.Load() == 0 })
	g.all.Wait()
}
