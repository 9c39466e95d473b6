package background

import (
	"runtime"
	"sync"
)

// Dispatcher runs the mailboxes of actors. A few goroutines, one for each processor, take mailboxes
// from one queue in order of arrival. The work of an actor is short and never blocks, so one
// goroutine per actor would only cost switches.
type Dispatcher struct {
	mu          sync.Mutex
	hasWork     sync.Cond // signaled when a mailbox is queued
	mailboxes   []func()  // ring buffer
	head        int
	count       int
	maxWorkers  int // limit of goroutines
	workers     int // running goroutines …
	idleWorkers int // running goroutines that wait for a mailbox
	closed      bool
}

// mailboxesPerYield is how many mailboxes a goroutine runs before it yields its processor to job
// goroutines and committer lanes.
const mailboxesPerYield = 32

// NewDispatcher creates a dispatcher without goroutines; they start with the first mailbox.
func NewDispatcher() *Dispatcher {
	d := &Dispatcher{mailboxes: make([]func(), 64), maxWorkers: max(runtime.GOMAXPROCS(0), 2)}
	d.hasWork.L = &d.mu
	return d
}

// Schedule queues a mailbox. Schedule and Throughput implement actor.Dispatcher.
func (d *Dispatcher) Schedule(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pushMailbox(f)
	switch {
	case d.idleWorkers > 0:
		d.idleWorkers--
		d.hasWork.Signal()
	case d.workers < d.maxWorkers:
		d.workers++
		go d.runMailboxes()
	}
}

// Throughput returns how many messages an actor handles before its goroutine yields.
func (d *Dispatcher) Throughput() int { return 300 }

func (d *Dispatcher) runMailboxes() {
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

// nextMailbox waits for a mailbox. It returns nil if the dispatcher is closed and empty, or if
// there are more goroutines than allowed.
func (d *Dispatcher) nextMailbox() func() {
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

func (d *Dispatcher) pushMailbox(f func()) {
	if d.count == len(d.mailboxes) {
		longer := make([]func(), 2*d.count)
		n := copy(longer, d.mailboxes[d.head:])
		copy(longer[n:], d.mailboxes[:d.head])
		d.mailboxes, d.head = longer, 0
	}
	d.mailboxes[(d.head+d.count)%len(d.mailboxes)] = f
	d.count++
}

// RunAside runs a function that may take long, and may be called within a mailbox. Meanwhile one
// more goroutine runs the queued mailboxes.
func (d *Dispatcher) RunAside(do func()) {
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

// Close makes the goroutines end after the queued mailboxes.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.idleWorkers = true, 0
	d.hasWork.Broadcast()
}
