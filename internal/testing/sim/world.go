package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// epoch is the start of every run by the store's clock.
var epoch = time.UnixMilli(1_700_000_000_000)

// simWorld is the world of a run. Nothing in the world runs concurrently: runNext picks the next
// item.
type simWorld struct {
	rng     *rand.Rand
	faults  faultRates
	now     time.Duration // since epoch
	hosts   []*host
	timers  timerHeap
	parked  []*coroutine
	current *coroutine // running coroutine; nil while a mailbox or a timer runs
	serial  uint64
	steps   int
	stacks  bool // record where coroutines wait
	closing bool // coroutines end instead of continuing
	failure error

	hash  uint64
	trace []string // the last lines
	lines int
	trips int // crashes of step actors in the middle of their work

	rewinds int // number of rewinds of the store

	functions    bool           // flows are functions, which have goroutines of their own
	codeCarriers []*codeCarrier // carriers of the members that still exist
}

func newWorld(seed uint64) *simWorld {
	w := &simWorld{rng: rand.New(rand.NewPCG(seed, 0x7061746368)), hash: 14695981039346656037}
	w.faults = drawFaultRates(w.rng)
	return w
}

// pendingRun is something that may run next.
type pendingRun struct {
	serial uint64
	f      func()
}

// coroutine is a function that may wait; meanwhile the world continues.
type coroutine struct {
	name   string
	host   *host
	next   func() (struct{}, bool)
	yield  func(struct{}) bool
	isDone func() bool // condition it waits for
	stack  []byte      // stack of its wait
}

// errClosing unwinds a coroutine when the run is over.
var errClosing = errors.New("sim: the run is over")

// startCoroutine starts a coroutine on a host.
func (w *simWorld) startCoroutine(h *host, name string, f func()) {
	s := &coroutine{name: name, host: h}
	s.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		s.yield = yield
		defer func() {
			if reason := recover(); reason != nil && !w.closing {
				panic(reason)
			}
		}()
		f()
	})
	h.addRun(func() { w.resumeCoroutine(s) })
}

func (w *simWorld) resumeCoroutine(s *coroutine) {
	before := w.current
	w.current = s
	s.next()
	w.current = before
}

// parkUntil suspends the current coroutine until over returns true. Only coroutines may wait; a
// wait in an actor is a failure.
func (w *simWorld) parkUntil(over func() bool) {
	s := w.current
	if s == nil {
		panic("sim: something blocks in an actor")
	}
	for w.closing || !over() {
		if w.closing {
			panic(errClosing)
		}
		s.isDone = over
		if w.stacks {
			s.stack = debug.Stack()
		}
		w.parked = append(w.parked, s)
		s.yield(struct{}{})
	}
}

// sleepFor suspends the current coroutine for d. Work of a dead host does not wait.
func (w *simWorld) sleepFor(d time.Duration) {
	if w.current == nil {
		return
	}
	until, h := w.now+d, w.current.host
	w.callAfter(nil, d, func() {})
	w.parkUntil(func() bool { return w.now >= until || h.dead })
}

// yieldOnce lets other work run first.
func (w *simWorld) yieldOnce() {
	if w.current == nil {
		return
	}
	passed, h := false, w.current.host
	h.addRun(func() { passed = true })
	w.parkUntil(func() bool { return passed || h.dead })
}

// runNext runs an item. It returns false if no item can ever run again.
func (w *simWorld) runNext() bool {
	w.steps++
	w.passTime()
	w.unparkReady()
	total := 0
	for _, h := range w.hosts {
		total += h.countRunnable()
	}
	if total == 0 {
		return w.jumpToTimer()
	}
	w.pickRun(w.rng.IntN(total))()
	w.settleFunctions()
	return true
}

func (w *simWorld) pickRun(n int) func() {
	for _, h := range w.hosts {
		if k := h.countRunnable(); n >= k {
			n -= k
			continue
		}
		r := h.pool[n]
		last := len(h.pool) - 1
		h.pool[n], h.pool[last] = h.pool[last], pendingRun{}
		h.pool = h.pool[:last]
		w.mixHash(r.serial)
		return r.f
	}
	panic("sim: nothing to pick")
}

// unparkReady makes the coroutines runnable whose waits are over.
func (w *simWorld) unparkReady() {
	left := w.parked[:0]
	for _, s := range w.parked {
		if s.isDone() {
			s.host.addRun(func() { w.resumeCoroutine(s) })
			continue
		}
		left = append(left, s)
	}
	clear(w.parked[len(left):])
	w.parked = left
}

// passTime advances the time a little for most steps, and a lot for a few.
func (w *simWorld) passTime() {
	switch n := w.rng.IntN(1000); {
	case n < w.faults.jumps && w.canLeap():
		w.advanceBy(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
	case n < 100:
		w.advanceBy(time.Duration(w.rng.IntN(1500)) * time.Microsecond)
	}
}

// jumpToTimer advances to the next timer.
func (w *simWorld) jumpToTimer() bool {
	if len(w.timers) == 0 {
		return false
	}
	w.advanceBy(max(w.timers[0].at-w.now, 0))
	return true
}

func (w *simWorld) advanceBy(d time.Duration) {
	w.now += d
	w.passBubble(d)
	for len(w.timers) > 0 && w.timers[0].at <= w.now {
		t := heap.Pop(&w.timers).(*worldTimer)
		t.index = -1
		if t.host == nil {
			t.f()
		} else {
			t.host.addRun(t.f)
		}
	}
}

// callAfter calls f after d: as a run of the host, or directly if the host is nil.
func (w *simWorld) callAfter(h *host, d time.Duration, f func()) (stop func() bool) {
	if d < 0 || w.now+d < w.now {
		w.failRun("somebody waits for %s", d)
		d = 0
	}
	w.serial++
	t := &worldTimer{at: w.now + d, serial: w.serial, host: h, f: f}
	heap.Push(&w.timers, t)
	return func() bool {
		if t.index < 0 {
			return false
		}
		heap.Remove(&w.timers, t.index)
		t.index = -1
		return true
	}
}

// drawChance returns true with a probability in 1/1000.
func (w *simWorld) drawChance(permille int) bool { return w.rng.IntN(1000) < permille }

// upTo draws a duration of at most d.
func (w *simWorld) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(d) + 1)).Truncate(time.Microsecond)
}

// storeNow returns the time of the store's clock.
func (w *simWorld) storeNow() time.Time { return epoch.Add(w.now) }

// failRun records the first broken promise.
func (w *simWorld) failRun(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.addTrace("FAILED: %v", w.failure)
	}
}

// keptLines is the number of trace lines shown for a failure.
const keptLines = 400

// addTrace adds a line to the trace.
func (w *simWorld) addTrace(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	h.Write([]byte(line))
	w.mixHash(h.Sum64())
	w.lines++
	if len(w.trace) >= 2*keptLines {
		w.trace = append(w.trace[:0], w.trace[keptLines:]...)
	}
	w.trace = append(w.trace, fmt.Sprintf("%12s %s", w.now.Round(time.Microsecond), line))
}

// mixHash adds a number to the run's hash.
func (w *simWorld) mixHash(n uint64) {
	w.hash = (w.hash ^ n ^ uint64(w.now)) * 1099511628211
}

// unwindAll ends all waiting coroutines, because each of them is a goroutine.
func (w *simWorld) unwindAll() {
	w.closing = true
	for _, h := range w.hosts {
		h.crashHost()
	}
	w.settleFunctions()
	for more := true; more; {
		parked := w.parked
		w.parked = nil
		more = len(parked) > 0
		for _, s := range parked {
			w.resumeCoroutine(s)
		}
		for _, h := range w.hosts {
			pool := h.pool
			h.pool = nil
			more = more || len(pool) > 0
			for _, r := range pool {
				r.f()
			}
		}
	}
}

type worldTimer struct {
	at     time.Duration
	serial uint64
	host   *host
	f      func()
	index  int
}

type timerHeap []*worldTimer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*worldTimer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
