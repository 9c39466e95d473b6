package actors

import (
	"sync"

	"github.com/troupe-engine/troupe/flow"
)

// eventBuffer is memory for the events of a decision, until they are in a row. They are most of
// what a step would allocate.
type eventBuffer struct {
	all  []flow.Event
	pool *sync.Pool
}

func newEventBuffers(size int) *sync.Pool {
	p := new(sync.Pool)
	p.New = func() any { return &eventBuffer{make([]flow.Event, size), p} }
	return p
}

// Buffers are for a decision about one thing, or about many reports.
var smallBuffers, largeBuffers = newEventBuffers(8), newEventBuffers(flow.MaxReports + 8)

// eventBufferFor is the buffer for a command. Nobody may keep what is in a buffer, so those who ask
// for events get them without.
func eventBufferFor(cmd *taskCommand) *eventBuffer {
	if cmd.events {
		return nil
	}
	if _, many := cmd.command.(flow.Reports); many {
		return largeBuffers.Get().(*eventBuffer)
	}
	return smallBuffers.Get().(*eventBuffer)
}

func (b *eventBuffer) emptyEvents() []flow.Event {
	if b == nil {
		return nil
	}
	return b.all[:0]
}

// recycleBuffer gives a buffer to whoever needs one next. Without one there is nothing to leave.
func (b *eventBuffer) recycleBuffer(events []flow.Event) {
	if b != nil {
		b.clearEvents(events)
		b.pool.Put(b)
	}
}

// clearEvents empties a buffer of the events of a decision. One that they did not fit in has grown
// with them, and is large from then on: it grows once, not in each decision.
func (b *eventBuffer) clearEvents(events []flow.Event) {
	clear(events)
	if cap(events) > len(b.all) {
		b.all, b.pool = events[:cap(events)], largeBuffers
	}
}
