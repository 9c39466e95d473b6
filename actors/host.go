package actors

import (
	"container/heap"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/goroutines"
)

// Host is the environment of the actors: how their work is scheduled, how blocking work runs beside
// them, and the clock. The zero value is the real one; the simulator brings its own.
type Host struct {
	// Dispatcher runs mailboxes. If nil, one goroutine per processor does.
	Dispatcher actor.Dispatcher
	// Go runs work that may block. If nil, it runs in reused goroutines.
	Go func(func())
	// Clock is the clock. If nil, it is the real one.
	Clock Clock
	// Park is called before a wait, with a function that reports whether the wait has ended. If
	// nil, waits block.
	Park func(over func() bool)
	// Probe, if set, receives each message of a task or step before its actor does. A panic in it
	// counts as that actor's panic. Tests and the simulator use it to crash actors.
	Probe func(actor string, message any)
}

func (h Host) callProbe(actor string, message any) {
	if h.Probe != nil {
		h.Probe(actor, message)
	}
}

// Clock is monotonic: it measures elapsed time, not the time of day.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// endingClock is a Clock whose long timers end with the member. A timer of an hour would otherwise
// keep the whole member in memory.
type endingClock struct {
	Clock
	mu         sync.Mutex
	longTimers map[*longTimer]bool
	closed     bool
}

// longTimer releases its function when it is stopped: the real clock may keep a stopped timer until
// its time has come.
type longTimer struct {
	do   func() // nil if the timer has fired or was stopped
	stop func() bool
}

// longTimerMin is the duration from which a timer counts as long.
const longTimerMin = 10 * time.Second

func newEndingClock(c Clock) *endingClock {
	return &endingClock{Clock: c, longTimers: map[*longTimer]bool{}}
}

func (e *endingClock) AfterFunc(d time.Duration, f func()) func() bool {
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
func (e *endingClock) takeAction(t *longTimer) (do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.longTimers, t)
	do, t.do = t.do, nil
	return do
}

// close stops the pending long timers. No new ones start afterwards.
func (e *endingClock) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for t := range e.longTimers {
		t.stop()
		t.do = nil
	}
	clear(e.longTimers)
}

func (h Host) orDefault(g *goroutines.Pool, d *dispatcher) Host {
	if h.Dispatcher == nil {
		h.Dispatcher = d
	}
	if h.Go == nil {
		h.Go = g.Run
	}
	if h.Clock == nil {
		h.Clock = realClock{}
	}
	return h
}

// timerQueue is one heap of due times for all actors. Each actor has at most one entry, its
// earliest.
type timerQueue struct {
	mu      sync.Mutex
	now     func() int64 // the store's time
	clock   Clock
	heap    timerHeap
	stop    func() bool // stops the clock's alarm
	armedAt int64       // time that the alarm is set to; 0 if not set
	closed  bool
}

// actorTimer is an actor's entry in the heap.
type actorTimer struct {
	at    int64
	index int // -1 if not in the heap
	fire  func()
}

func newTimer(fire func()) *actorTimer { return &actorTimer{index: -1, fire: fire} }

// setTimer sets a timer to a time; 0 removes it.
func (t *timerQueue) setTimer(e *actorTimer, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed || at == e.at && e.index >= 0:
		return
	case at == 0 && e.index >= 0:
		heap.Remove(&t.heap, e.index)
	case at == 0:
		return
	case e.index >= 0:
		e.at = at
		heap.Fix(&t.heap, e.index)
	default:
		e.at = at
		heap.Push(&t.heap, e)
	}
	t.armClock()
}

// armClock sets the clock's alarm to the earliest entry.
func (t *timerQueue) armClock() {
	if len(t.heap) == 0 || t.armedAt != 0 && t.armedAt <= t.heap[0].at {
		return // an alarm that fires too early only checks again
	}
	if t.stop != nil {
		t.stop()
	}
	t.armedAt = t.heap[0].at
	t.stop = t.clock.AfterFunc(flow.Milliseconds(t.armedAt-t.now()), t.fireDue)
}

func (t *timerQueue) fireDue() {
	t.mu.Lock()
	t.armedAt = 0
	now := t.now()
	var due []*actorTimer
	for len(t.heap) > 0 && t.heap[0].at <= now && !t.closed {
		due = append(due, heap.Pop(&t.heap).(*actorTimer))
	}
	if !t.closed {
		t.armClock()
	}
	t.mu.Unlock()
	for _, e := range due {
		e.fire()
	}
}

func (t *timerQueue) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.stop != nil {
		t.stop()
	}
}

type timerHeap []*actorTimer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	e := x.(*actorTimer)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
