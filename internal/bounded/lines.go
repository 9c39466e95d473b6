// Package bounded keeps what is said of many things of one kind from filling a log.
//
// Promises: of what happens rarely each is told; of a flood the first ones, then one in a while,
// with how many were left out.
package bounded

import (
	"sync"
	"time"
)

// AtOnce is how many lines of a kind come one after the other, Every in what time there is room for
// one more.
const (
	AtOnce = 20
	Every  = time.Second
)

// Lines bounds the lines of one kind. The zero value is ready.
type Lines struct {
	mu      sync.Mutex
	spent   time.Duration // of AtOnce * Every; it comes back with time
	last    time.Time
	leftOut int
}

// Admit reports whether there is room for a line, and how many were left out since the last one.
func (l *Lines) Admit(now time.Time) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = max(0, l.spent-max(0, now.Sub(l.last)))
	l.last = now
	if l.spent > (AtOnce-1)*Every {
		l.leftOut++
		return 0, false
	}
	l.spent += Every
	leftOut, l.leftOut = l.leftOut, 0
	return leftOut, true
}

// Once remembers what was said, up to a bound, beyond which it is said anew. The zero value is
// ready.
type Once struct {
	mu   sync.Mutex
	said map[string]bool
}

// mostSaid bounds what is remembered.
const mostSaid = 1000

// First reports whether something was not said before.
func (o *Once) First(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said[what] {
		return false
	}
	if o.said == nil || len(o.said) >= mostSaid {
		o.said = map[string]bool{}
	}
	o.said[what] = true
	return true
}
