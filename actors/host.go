package actors

import (
	"container/heap"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/goroutines"
)

// Host is what the actors stand on: how their work is scheduled, how blocking work is done beside
// them, and the clock. The zero value is the real one; the simulator brings its own.
type Host struct {
	// Dispatcher runs mailboxes. nil = a goroutine for each processor does.
	Dispatcher actor.Dispatcher
	// Go runs work that may block. nil = in goroutines that are used again.
	Go func(func())
	// Clock tells the time. nil = the real one.
	Clock Clock
	// Park is called before a wait, with what says that it is over. nil = nothing: waits block.
	Park func(over func() bool)
	// Probe, when set, sees each message of a task or step before its actor does; a panic in it is
	// that actor's. It is how tests and the simulator make actors crash.
	Probe func(actor string, message any)
}

func (h Host) callProbe(actor string, message any) {
	if h.Probe != nil {
		h.Probe(actor, message)
	}
}

// Clock is monotonic; it says how much time has passed, not what time it is.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// endingClock is a Clock whose long timers end with the member: one that waits for an hour would
// keep all of the member in memory.
type endingClock struct {
	Clock
	mu         sync.Mutex
	longTimers map[*longTimer]bool
	closed     bool
}

// longTimer lets go of what it would have done when it is stopped: the real clock may keep a
// stopped timer until its time has come.
type longTimer struct {
	do   func() // nil = it has rung, or was stopped
	stop func() bool
}

// longTimerMin is from when on a timer is a long one.
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

// takeAction is what a timer is there for, which only the first one who asks gets.
func (e *endingClock) takeAction(t *longTimer) (do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.longTimers, t)
	do, t.do = t.do, nil
	return do
}

// close stops those that wait. None begins any more.
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

// timerQueue is one heap of due times over all actors: each has at most one entry, its earliest.
type timerQueue struct {
	mu      sync.Mutex
	now     func() int64 // the store's time
	clock   Clock
	heap    timerHeap
	stop    func() bool // of the clock's alarm
	armedAt int64       // what it is set to; 0 = not set
	closed  bool
}

// actorTimer is an actor's place in the heap.
type actorTimer struct {
	at    int64
	index int // -1 when not in the heap
	fire  func()
}

func newTimer(fire func()) *actorTimer { return &actorTimer{index: -1, fire: fire} }

// setTimer moves a timer to a time; 0 takes it out.
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
		return // an alarm that rings too early only looks again
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
