package background

import (
	"container/heap"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
)

// Timers is one heap of due times for all actors. Each actor has at most one entry, for its
// earliest alarm.
type Timers struct {
	now   func() int64 // the store's time
	clock host.Clock

	mu      sync.Mutex
	heap    timerHeap
	stop    func() bool // stops the clock's alarm
	armedAt int64       // time that the alarm is set to; 0 if not set
	closed  bool
}

// NewTimers creates the heap of a member.
func NewTimers(now func() int64, clock host.Clock) *Timers { return &Timers{now: now, clock: clock} }

// Timer is an actor's entry in the heap.
type Timer struct {
	at    int64
	index int // -1 if not in the heap
	fire  func()
}

// NewTimer creates an entry that is not in the heap.
func NewTimer(fire func()) *Timer { return &Timer{index: -1, fire: fire} }

// Set sets a timer to a time; 0 removes it.
func (t *Timers) Set(e *Timer, at int64) {
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
func (t *Timers) armClock() {
	if len(t.heap) == 0 || t.armedAt != 0 && t.armedAt <= t.heap[0].at {
		return // an early alarm is harmless, because it only checks again
	}
	if t.stop != nil {
		t.stop()
	}
	t.armedAt = t.heap[0].at
	t.stop = t.clock.AfterFunc(flow.Milliseconds(t.armedAt-t.now()), t.fireDue)
}

func (t *Timers) fireDue() {
	t.mu.Lock()
	t.armedAt = 0
	now := t.now()
	var due []*Timer
	for len(t.heap) > 0 && t.heap[0].at <= now && !t.closed {
		due = append(due, heap.Pop(&t.heap).(*Timer))
	}
	if !t.closed {
		t.armClock()
	}
	t.mu.Unlock()
	for _, e := range due {
		e.fire()
	}
}

// Close ends all timers.
func (t *Timers) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.stop != nil {
		t.stop()
	}
}

type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	e := x.(*Timer)
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
