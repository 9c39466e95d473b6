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

// Rooms for a decision about one thing, and for one about many reports.
var small, large sync.Pool

func init() {
	for pool, size := range map[*sync.Pool]int{&small: 8, &large: flow.MaxReports + 8} {
		pool.New = func() any { return &room{make([]flow.Event, size), pool} }
	}
}

// roomFor a command. Nobody may keep what is in a room, so those who wait for events get them without.
func roomFor(cmd *command) *room {
	if cmd.reply != nil {
		return nil
	}
	if _, many := cmd.cmd.(flow.Reports); many {
		return large.Get().(*room)
	}
	return small.Get().(*room)
}

func (r *room) events() []flow.Event {
	if r == nil {
		return nil
	}
	return r.all[:0]
}

// leave gives a room to whoever needs one next, with the first n places used. Without one there is nothing to leave.
func (r *room) leave(n int) {
	if r != nil {
		clear(r.all[:min(n, len(r.all))])
		r.back.Put(r)
	}
}
