// Package goroutines runs functions that may block in reused goroutines. Jobs need deep stacks, and
// growing a new stack each time costs more than a short job.
//
// Promises: a function starts at once, however many are running. The number of idle goroutines is
// bounded, and they end when the pool is closed.
package goroutines

import "sync"

// Pool is a pool of reusable goroutines.
type Pool struct {
	next chan func()
	done chan struct{}
	once sync.Once
	idle chan struct{} // slots of idle goroutines
}

// New returns a pool that keeps up to idle goroutines waiting for work. Others end after their
// function.
func New(idle int) *Pool {
	return &Pool{next: make(chan func()), done: make(chan struct{}), idle: make(chan struct{}, idle)}
}

// Run runs f in an idle goroutine, or in a new one.
func (p *Pool) Run(f func()) {
	select {
	case p.next <- f:
	default:
		go p.runWorker(f)
	}
}

func (p *Pool) runWorker(f func()) {
	f()
	select {
	case p.idle <- struct{}{}:
		defer func() { <-p.idle }()
	default:
		return
	}
	for {
		select {
		case f := <-p.next:
			f()
		case <-p.done:
			return
		}
	}
}

// Close ends the idle goroutines. Running functions continue to their end.
func (p *Pool) Close() { p.once.Do(func() { close(p.done) }) }
