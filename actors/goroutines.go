package actors

import "sync"

// goroutines runs functions that may block in goroutines that are used again: what carriers do needs deep
// stacks, and growing a new one each time costs more than the work of a short step.
type goroutines struct {
	next chan func()
	done chan struct{}
	once sync.Once
	idle chan struct{} // places for goroutines that wait for work
}

// maxIdle is how many goroutines wait for work; further ones end when theirs is done.
const maxIdle = 256

func newGoroutines() *goroutines {
	return &goroutines{next: make(chan func()), done: make(chan struct{}), idle: make(chan struct{}, maxIdle)}
}

// run hands f to a goroutine that waits, or to a new one.
func (g *goroutines) run(f func()) {
	select {
	case g.next <- f:
	default:
		go g.work(f)
	}
}

func (g *goroutines) work(f func()) {
	f()
	select {
	case g.idle <- struct{}{}:
		defer func() { <-g.idle }()
	default:
		return
	}
	for {
		select {
		case f := <-g.next:
			f()
		case <-g.done:
			return
		}
	}
}

// close ends the goroutines that wait. What is running goes on to its end.
func (g *goroutines) close() { g.once.Do(func() { close(g.done) }) }
