package actors

import "sync"

// crew runs functions that may block in goroutines that are used again: what carriers do needs deep
// stacks, and growing a new one each time costs more than the work of a short step.
type crew struct {
	next chan func()
	done chan struct{}
	once sync.Once
	idle chan struct{} // places for goroutines that wait for work
}

// maxIdle is how many goroutines wait for work; further ones end when theirs is done.
const maxIdle = 256

func newCrew() *crew {
	return &crew{next: make(chan func()), done: make(chan struct{}), idle: make(chan struct{}, maxIdle)}
}

// run hands f to a goroutine that waits, or to a new one.
func (c *crew) run(f func()) {
	select {
	case c.next <- f:
	default:
		go c.work(f)
	}
}

func (c *crew) work(f func()) {
	f()
	select {
	case c.idle <- struct{}{}:
		defer func() { <-c.idle }()
	default:
		return
	}
	for {
		select {
		case f := <-c.next:
			f()
		case <-c.done:
			return
		}
	}
}

// dismiss ends the goroutines that wait. What is running goes on to its end.
func (c *crew) dismiss() { c.once.Do(func() { close(c.done) }) }
