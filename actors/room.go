package actors

import (
	"sync"

	"github.com/troupe-engine/troupe/flow"
)

// room is memory for the events of a decision, until they are in a row. They are most of what a step would allocate.
type room struct {
	all  []flow.Event
	back *sync.Pool
}

func newRooms(size int) *sync.Pool {
	p := new(sync.Pool)
	p.New = func() any { return &room{make([]flow.Event, size), p} }
	return p
}

// Rooms are for a decision about one thing, or about many reports.
var smallRooms, largeRooms = newRooms(8), newRooms(flow.MaxReports + 8)

// roomFor a command. Nobody may keep what is in a room, so those who ask for events get them without.
func roomFor(cmd *command) *room {
	if cmd.events {
		return nil
	}
	if _, many := cmd.cmd.(flow.Reports); many {
		return largeRooms.Get().(*room)
	}
	return smallRooms.Get().(*room)
}

func (r *room) events() []flow.Event {
	if r == nil {
		return nil
	}
	return r.all[:0]
}

// leave gives a room to whoever needs one next. Without one there is nothing to leave.
func (r *room) leave(events []flow.Event) {
	if r != nil {
		r.clear(events)
		r.back.Put(r)
	}
}

// clear empties a room of the events of a decision. One that they did not fit in has grown with them, and is large from then on: it grows
// once, not in each decision.
func (r *room) clear(events []flow.Event) {
	clear(events)
	if cap(events) > len(r.all) {
		r.all, r.back = events[:cap(events)], largeRooms
	}
}
