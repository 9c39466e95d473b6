package actors

import (
	"sync"

	"github.com/troupe-engine/troupe/flow"
)

// eventBuffer is reusable memory for the events of a decision until they are in a row. Without it,
// these events would be most allocations of a step.
type eventBuffer struct {
	all  []flow.Event
	pool *sync.Pool
}

func newEventBuffers(size int) *sync.Pool {
	p := new(sync.Pool)
	p.New = func() any { return &eventBuffer{make([]flow.Event, size), p} }
	return p
}

// smallBuffers and largeBuffers hold buffers for a decision about one command, or about many
// reports.
var smallBuffers, largeBuffers = newEventBuffers(8), newEventBuffers(flow.MaxReports + 8)

// eventBufferFor returns the buffer for a command. It returns nil if the caller asks for the
// events, because events in a buffer must not be kept.
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

// recycleBuffer returns a buffer to its pool. It does nothing if b is nil.
func (b *eventBuffer) recycleBuffer(events []flow.Event) {
	if b != nil {
		b.clearEvents(events)
		b.pool.Put(b)
	}
}

// clearEvents clears the events of a decision from a buffer. If the decision outgrew the buffer,
// the buffer keeps the larger memory and moves to largeBuffers.
func (b *eventBuffer) clearEvents(events []flow.Event) {
	clear(events)
	if cap(events) > len(b.all) {
		b.all, b.pool = events[:cap(events)], largeBuffers
	}
}
