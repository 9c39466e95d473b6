package actors

import (
	"runtime"
	"sync"
)

// mill runs mailboxes: as many goroutines as there are processors take them off one line, the longest
// waiting first. What an actor does is short and never blocks, so a goroutine for each that is awake
// would only add the cost of changing from one to the next.
type mill struct {
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

// millShift is how many mailboxes a goroutine runs before it lets others have its processor: those who
// carry out jobs, and lanes that the store has answered.
const millShift = 32

func newMill() *mill {
	m := &mill{line: make([]func(), 64), most: max(runtime.GOMAXPROCS(0), 2)}
	m.grown.L = &m.mu
	return m
}

// Schedule and Throughput make a mill the dispatcher of mailboxes.
func (m *mill) Schedule(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.push(f)
	switch {
	case m.idle > 0:
		m.idle--
		m.grown.Signal()
	case m.working < m.most:
		m.working++
		go m.work()
	}
}

// Throughput is how many messages an actor handles before another goroutine gets its processor.
func (m *mill) Throughput() int { return 300 }

func (m *mill) work() {
	for n := 1; ; n++ {
		f := m.next()
		if f == nil {
			return
		}
		f()
		if n%millShift == 0 {
			runtime.Gosched()
		}
	}
}

// next waits for a mailbox; nil when the mill is closed and none is left, or when there are more goroutines than there are to be.
func (m *mill) next() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.working > m.most {
		m.working--
		return nil
	}
	for m.count == 0 {
		if m.closed {
			m.working--
			return nil
		}
		m.idle++
		m.grown.Wait()
	}
	f := m.line[m.first]
	m.line[m.first] = nil
	m.first = (m.first + 1) % len(m.line)
	m.count--
	return f
}

func (m *mill) push(f func()) {
	if m.count == len(m.line) {
		longer := make([]func(), 2*m.count)
		n := copy(longer, m.line[m.first:])
		copy(longer[n:], m.line[:m.first])
		m.line, m.first = longer, 0
	}
	m.line[(m.first+m.count)%len(m.line)] = f
	m.count++
}

// aside does something that may take long, perhaps in the middle of a mailbox: meanwhile one more goroutine runs those in line.
func (m *mill) aside(do func()) {
	m.mu.Lock()
	m.most++
	if m.count > 0 && m.idle == 0 {
		m.working++
		go m.work()
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.most--
		m.mu.Unlock()
	}()
	do()
}

// close ends the goroutines as soon as nothing is left to do.
func (m *mill) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.idle = true, 0
	m.grown.Broadcast()
}
