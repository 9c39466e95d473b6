package actors

import (
	"container/heap"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// manyAlarms is from how many on somebody looks which of them still have a reason: a long task, or a step of many
// units, with long timeouts would gather millions.
const manyAlarms = 1024

// idleAlarms asks a task which of a step's alarms have no reason any more, and is the answer.
type idleAlarms struct {
	among alarmHeap
	reply *actor.PID
}

// untidy says that there are so many alarms that it is worth while to look through them.
func (h *hands) untidy() bool { return len(h.alarms) >= max(h.tidyAt, manyAlarms) }

// idle are those alarms that have no reason any more.
func (t *task) idle(among alarmHeap) alarmHeap {
	if t.loading || t.state == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(among), t.state.Awaits)
}

// drop takes alarms out: if one of them gets a reason again, that is told after it was found to have none. The timer
// may ring for nothing then.
func (h *hands) drop(idle alarmHeap) {
	gone := make(map[flow.Alarm]bool, len(idle))
	for _, a := range idle {
		gone[a] = true
	}
	h.alarms = slices.DeleteFunc(h.alarms, func(a flow.Alarm) bool { return gone[a] })
	heap.Init(&h.alarms)
	h.tidyAt = 2 * len(h.alarms)
}
