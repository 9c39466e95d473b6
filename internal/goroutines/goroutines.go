// Package goroutines runs functions that may block in goroutines that are used again: jobs need
// deep stacks, and growing a new one each time costs more than the work of a short job.
//
// Promises: a function begins at once, however many are running; goroutines that wait for work are
// bounded, and end when the pool is closed.
package goroutines

import "sync"

// Pool is such goroutines.
type Pool struct {
	next chan func()
	done chan struct{}
	once sync.Once
	idle chan struct{} // places for goroutines that wait for work
}

// New makes a pool in which up to idle goroutines wait for work; further ones end when theirs is
// done.
func New(idle int) *Pool {
	return &Pool{next: make(chan func()), done: make(chan struct{}), idle: make(chan struct{}, idle)}
}

// Run hands f to a goroutine that waits, or to a new one.
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

// Close ends the goroutines that wait. What is running goes on to its end.
func (p *Pool) Close() { p.once.Do(func() { close(p.done) }) }
