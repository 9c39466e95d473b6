package actors

import (
	"runtime"
	"sync"
)

// dispatcher runs the mailboxes of actors: as many goroutines as there are processors take them off one line, the longest
// waiting first. What an actor does is short and never blocks, so a goroutine for each that is awake
// would only add the cost of changing from one to the next.
type dispatcher struct {
	mu      sync.Mutex
	grown   sync.Cond // the line
	line    []func()  // a ring
	first   int
	count   int
	most    int // goroutines
	working int // of them, of which …
	idle    int // … so many wait
	closed  bool
}

// dispatcherShift is how many mailboxes a goroutine runs before it lets others have its processor: those who
// carry out jobs, and the lanes of the committer that the store has answered.
const dispatcherShift = 32

func newDispatcher() *dispatcher {
	d := &dispatcher{line: make([]func(), 64), most: max(runtime.GOMAXPROCS(0), 2)}
	d.grown.L = &d.mu
	return d
}

// Schedule and Throughput make it an actor.Dispatcher.
func (d *dispatcher) Schedule(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.push(f)
	switch {
	case d.idle > 0:
		d.idle--
		d.grown.Signal()
	case d.working < d.most:
		d.working++
		go d.work()
	}
}

// Throughput is how many messages an actor handles before another goroutine gets its processor.
func (d *dispatcher) Throughput() int { return 300 }

func (d *dispatcher) work() {
	for n := 1; ; n++ {
		f := d.next()
		if f == nil {
			return
		}
		f()
		if n%dispatcherShift == 0 {
			runtime.Gosched()
		}
	}
}

// next waits for a mailbox; nil when the dispatcher is closed and none is left, or when there are more goroutines than there are to be.
func (d *dispatcher) next() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.working > d.most {
		d.working--
		return nil
	}
	for d.count == 0 {
		if d.closed {
			d.working--
			return nil
		}
		d.idle++
		d.grown.Wait()
	}
	f := d.line[d.first]
	d.line[d.first] = nil
	d.first = (d.first + 1) % len(d.line)
	d.count--
	return f
}

func (d *dispatcher) push(f func()) {
	if d.count == len(d.line) {
		longer := make([]func(), 2*d.count)
		n := copy(longer, d.line[d.first:])
		copy(longer[n:], d.line[:d.first])
		d.line, d.first = longer, 0
	}
	d.line[(d.first+d.count)%len(d.line)] = f
	d.count++
}

// aside does something that may take long, perhaps in the middle of a mailbox: meanwhile one more goroutine runs those in line.
func (d *dispatcher) aside(do func()) {
	d.mu.Lock()
	d.most++
	if d.count > 0 && d.idle == 0 {
		d.working++
		go d.work()
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.most--
		d.mu.Unlock()
	}()
	do()
}

// close ends the goroutines as soon as nothing is left to do.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.idle = true, 0
	d.grown.Broadcast()
}
