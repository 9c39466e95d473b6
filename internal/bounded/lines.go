// Package bounded keeps repeated messages of one kind from filling a log.
//
// Promises: rare messages are all logged. Of a flood, the first messages are logged, and then one
// per interval with the number of omitted ones.
package bounded

import (
	"sync"
	"time"
)

// AtOnce is the number of lines of one kind that may be logged in a row. Every is the interval
// after which one more line is allowed.
const (
	AtOnce = 20
	Every  = time.Second
)

// Lines limits the lines of one kind. The zero value is ready to use.
type Lines struct {
	mu      sync.Mutex
	spent   time.Duration // part of AtOnce * Every that is used up; restored over time
	last    time.Time
	leftOut int
}

// Admit reports whether a line may be logged, and how many lines were omitted since the last logged
// line.
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

// Once remembers a bounded number of messages. Beyond the bound, a message may be logged again. The
// zero value is ready to use.
type Once struct {
	mu   sync.Mutex
	said map[string]bool
}

// mostSaid is the maximal number of remembered messages.
const mostSaid = 1000

// First reports whether a message occurs for the first time.
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
