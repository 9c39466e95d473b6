package actors

import (
	"sync"

	"github.com/troupe-engine/troupe/flow"
)

// room is memory for the events of a decision, until they are written as a row. They are most of what a
// step would allocate.
type room [8]flow.Event

var rooms = sync.Pool{New: func() any { return new(room) }}

// roomFor a command. Nobody may keep what is in a room, so those who wait for events get them without.
func roomFor(cmd *command) *room {
	if cmd.reply != nil {
		return nil
	}
	return rooms.Get().(*room)
}

func (r *room) events() []flow.Event {
	if r == nil {
		return nil
	}
	return r[:0]
}

// leave gives a room to whoever needs one next. Without one there is nothing to leave.
func (r *room) leave() {
	if r != nil {
		clear(r[:])
		rooms.Put(r)
	}
}
