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

// epoch is when every run begins by the store's clock.
var epoch = time.UnixMilli(1_700_000_000_000)

// world is one run. Nothing in it runs beside anything else: step picks what is next.
type world struct {
	rng     *rand.Rand
	weather weather
	now     time.Duration // since epoch
	hosts   []*host
	timers  timerHeap
	parked  []*strand
	current *strand // that is running; nil while a mailbox or a timer is
	serial  uint64
	steps   int
	stacks  bool // note where strands wait
	closing bool // strands end instead of going on
	failure error

	hash  uint64
	trace []string // the last lines
	lines int
	trips int // of step actors in the middle of their work

	rewinds int // how often the store went back
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x7061746368)), hash: 14695981039346656037}
	w.weather = drawWeather(w.rng)
	return w
}

// run is something that may happen next.
type run struct {
	serial uint64
	f      func()
}

// strand is a function that may wait in the middle; while it does, the world goes on.
type strand struct {
	name  string
	host  *host
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	over  func() bool // what it waits for
	stack []byte      // where it waits
}

// errClosing unwinds a strand when the run is over.
var errClosing = errors.New("sim: the run is over")

// launch begins a strand on a host.
func (w *world) launch(h *host, name string, f func()) {
	s := &strand{name: name, host: h}
	s.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		s.yield = yield
		defer func() {
			if reason := recover(); reason != nil && !w.closing {
				panic(reason)
			}
		}()
		f()
	})
	h.add(func() { w.resume(s) })
}

func (w *world) resume(s *strand) {
	before := w.current
	w.current = s
	s.next()
	w.current = before
}

// park lets the world go on until over says so. Only strands may wait: an actor that does is wrong.
func (w *world) park(over func() bool) {
	s := w.current
	if s == nil {
		panic("sim: something blocks in an actor")
	}
	for w.closing || !over() {
		if w.closing {
			panic(errClosing)
		}
		s.over = over
		if w.stacks {
			s.stack = debug.Stack()
		}
		w.parked = append(w.parked, s)
		s.yield(struct{}{})
	}
}

// sleep lets time pass. Work of a host that is dead does not wait.
func (w *world) sleep(d time.Duration) {
	if w.current == nil {
		return
	}
	until, h := w.now+d, w.current.host
	w.after(nil, d, func() {})
	w.park(func() bool { return w.now >= until || h.dead })
}

// breathe lets others run first.
func (w *world) breathe() {
	if w.current == nil {
		return
	}
	passed, h := false, w.current.host
	h.add(func() { passed = true })
	w.park(func() bool { return passed || h.dead })
}

// step lets one thing happen. false: there is nothing left that could, ever.
func (w *world) step() bool {
	w.steps++
	w.letTimePass()
	w.unpark()
	total := 0
	for _, h := range w.hosts {
		total += h.runnable()
	}
	if total == 0 {
		return w.jump()
	}
	w.pick(w.rng.IntN(total))()
	return true
}

func (w *world) pick(n int) func() {
	for _, h := range w.hosts {
		if k := h.runnable(); n >= k {
			n -= k
			continue
		}
		r := h.pool[n]
		last := len(h.pool) - 1
		h.pool[n], h.pool[last] = h.pool[last], run{}
		h.pool = h.pool[:last]
		w.mix(r.serial)
		return r.f
	}
	panic("sim: nothing to pick")
}

// unpark makes strands runnable whose wait is over.
func (w *world) unpark() {
	left := w.parked[:0]
	for _, s := range w.parked {
		if s.over() {
			s.host.add(func() { w.resume(s) })
			continue
		}
		left = append(left, s)
	}
	clear(w.parked[len(left):])
	w.parked = left
}

// letTimePass takes a little time for most steps, and a lot for a few.
func (w *world) letTimePass() {
	switch n := w.rng.IntN(1000); {
	case n < w.weather.jumps && w.leaps():
		w.advance(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
	case n < 100:
		w.advance(time.Duration(w.rng.IntN(1500)) * time.Microsecond)
	}
}

// jump goes to the next time at which something happens.
func (w *world) jump() bool {
	if len(w.timers) == 0 {
		return false
	}
	w.advance(max(w.timers[0].at-w.now, 0))
	return true
}

func (w *world) advance(d time.Duration) {
	w.now += d
	for len(w.timers) > 0 && w.timers[0].at <= w.now {
		t := heap.Pop(&w.timers).(*timer)
		t.index = -1
		if t.host == nil {
			t.f()
		} else {
			t.host.add(t.f)
		}
	}
}

// after calls f in a while: as a run of the host, or at once when there is none.
func (w *world) after(h *host, d time.Duration, f func()) (stop func() bool) {
	if d < 0 || w.now+d < w.now {
		w.fail("somebody waits for %s", d)
		d = 0
	}
	w.serial++
	t := &timer{at: w.now + d, serial: w.serial, host: h, f: f}
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

// chance is true in so many of 1000 cases.
func (w *world) chance(permille int) bool { return w.rng.IntN(1000) < permille }

// upTo draws a duration below d.
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(d) + 1)).Truncate(time.Microsecond)
}

// storeNow is the store's clock.
func (w *world) storeNow() time.Time { return epoch.Add(w.now) }

// fail notes the first promise that is broken.
func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.say("FAILED: %v", w.failure)
	}
}

// keptLines is how much of the trace a failure shows.
const keptLines = 400

// say adds a line to the trace.
func (w *world) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	h.Write([]byte(line))
	w.mix(h.Sum64())
	w.lines++
	if len(w.trace) >= 2*keptLines {
		w.trace = append(w.trace[:0], w.trace[keptLines:]...)
	}
	w.trace = append(w.trace, fmt.Sprintf("%12s %s", w.now.Round(time.Microsecond), line))
}

// mix makes a number part of the run's hash.
func (w *world) mix(n uint64) {
	w.hash = (w.hash ^ n ^ uint64(w.now)) * 1099511628211
}

// end unwinds what is still waiting: every strand is a goroutine that has to end.
func (w *world) end() {
	w.closing = true
	for _, h := range w.hosts {
		h.die()
	}
	for more := true; more; {
		parked := w.parked
		w.parked = nil
		more = len(parked) > 0
		for _, s := range parked {
			w.resume(s)
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

type timer struct {
	at     time.Duration
	serial uint64
	host   *host
	f      func()
	index  int
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
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
