package actors

import (
	"runtime"
	"sync"
)

// dispatcher runs the mailboxes of actors: as many goroutines as there are processors take them off
// one line, the longest waiting first. What an actor does is short and never blocks, so a goroutine
// for each that is awake would only add the cost of changing from one to the next.
type dispatcher struct {
	mu          sync.Mutex
	hasWork     sync.Cond // the line
	mailboxes   []func()  // a ring
	head        int
	count       int
	maxWorkers  int // goroutines
	workers     int // of them, of which …
	idleWorkers int // … so many wait
	closed      bool
}

// mailboxesPerYield is how many mailboxes a goroutine runs before it lets others have its
// processor: those who carry out jobs, and the lanes of the committer that the store has answered.
const mailboxesPerYield = 32

func newDispatcher() *dispatcher {
	d := &dispatcher{mailboxes: make([]func(), 64), maxWorkers: max(runtime.GOMAXPROCS(0), 2)}
	d.hasWork.L = &d.mu
	return d
}

// Schedule and Throughput make it an actor.Dispatcher.
func (d *dispatcher) Schedule(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.push(f)
	switch {
	case d.idleWorkers > 0:
		d.idleWorkers--
		d.hasWork.Signal()
	case d.workers < d.maxWorkers:
		d.workers++
		go d.runMailboxes()
	}
}

// Throughput is how many messages an actor handles before another goroutine gets its processor.
func (d *dispatcher) Throughput() int { return 300 }

func (d *dispatcher) runMailboxes() {
	for n := 1; ; n++ {
		f := d.nextMailbox()
		if f == nil {
			return
		}
		f()
		if n%mailboxesPerYield == 0 {
			runtime.Gosched()
		}
	}
}

// nextMailbox waits for a mailbox; nil when the dispatcher is closed and none is left, or when
// there are more goroutines than there are to be.
func (d *dispatcher) nextMailbox() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.workers > d.maxWorkers {
		d.workers--
		return nil
	}
	for d.count == 0 {
		if d.closed {
			d.workers--
			return nil
		}
		d.idleWorkers++
		d.hasWork.Wait()
	}
	f := d.mailboxes[d.head]
	d.mailboxes[d.head] = nil
	d.head = (d.head + 1) % len(d.mailboxes)
	d.count--
	return f
}

func (d *dispatcher) push(f func()) {
	if d.count == len(d.mailboxes) {
		longer := make([]func(), 2*d.count)
		n := copy(longer, d.mailboxes[d.head:])
		copy(longer[n:], d.mailboxes[:d.head])
		d.mailboxes, d.head = longer, 0
	}
	d.mailboxes[(d.head+d.count)%len(d.mailboxes)] = f
	d.count++
}

// runAside does something that may take long, perhaps in the middle of a mailbox: meanwhile one
// more goroutine runs those in line.
func (d *dispatcher) runAside(do func()) {
	d.mu.Lock()
	d.maxWorkers++
	if d.count > 0 && d.idleWorkers == 0 {
		d.workers++
		go d.runMailboxes()
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.maxWorkers--
		d.mu.Unlock()
	}()
	do()
}

// close ends the goroutines as soon as nothing is left to do.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.idleWorkers = true, 0
	d.hasWork.Broadcast()
}
