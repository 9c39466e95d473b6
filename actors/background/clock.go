package background

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
)

// RealClock is the clock of the machine.
type RealClock struct{}

// Now returns the time of the machine.
func (RealClock) Now() time.Time { return time.Now() }

// AfterFunc runs f after d.
func (RealClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// EndingClock is a clock whose long timers end with the member. A timer of an hour would otherwise
// keep the whole member in memory.
type EndingClock struct {
	host.Clock
	mu         sync.Mutex
	longTimers map[*longTimer]bool
	closed     bool
}

// longTimer releases its function when it is stopped, because the real clock may keep a stopped
// timer in memory until it is due.
type longTimer struct {
	do   func() // nil if the timer has fired or was stopped
	stop func() bool
}

// longTimerMin is the duration from which a timer counts as long.
const longTimerMin = 10 * time.Second

// NewEndingClock wraps a clock.
func NewEndingClock(c host.Clock) *EndingClock {
	return &EndingClock{Clock: c, longTimers: map[*longTimer]bool{}}
}

// AfterFunc runs f after d. If d is long, f does not run after the member has ended.
func (e *EndingClock) AfterFunc(d time.Duration, f func()) func() bool {
	if d < longTimerMin {
		return e.Clock.AfterFunc(d, f)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return func() bool { return false }
	}
	t := &longTimer{do: f}
	e.longTimers[t] = true
	t.stop = e.Clock.AfterFunc(d, func() {
		if do := e.takeAction(t); do != nil {
			do()
		}
	})
	return func() bool {
		t.stop()
		return e.takeAction(t) != nil
	}
}

// takeAction returns a timer's function to the first caller, and nil to later ones.
func (e *EndingClock) takeAction(t *longTimer) (do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.longTimers, t)
	do, t.do = t.do, nil
	return do
}

// Close stops the pending long timers. No new ones start afterwards.
func (e *EndingClock) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for t := range e.longTimers {
		t.stop()
		t.do = nil
	}
	clear(e.longTimers)
}
