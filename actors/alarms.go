package actors

import (
	"container/heap"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// armTimer sets the timer to the earliest alarm.
func (h *effectPerformer) armTimer() {
	at := int64(0)
	if len(h.alarms) > 0 {
		at = h.alarms[0].At
	}
	h.m.timers.Set(h.timer, at)
}

// takeDueAlarms removes and returns the alarms whose time has come.
func (h *effectPerformer) takeDueAlarms(now int64) []flow.Alarm {
	var due []flow.Alarm
	for len(h.alarms) > 0 && h.alarms[0].At <= now {
		due = append(due, heap.Pop(&h.alarms).(flow.Alarm))
	}
	h.armTimer()
	return due
}

// manyAlarms is the number of alarms above which an actor looks for alarms without a reason. A long
// task, or a step of many units, with long timeouts would otherwise collect millions.
const manyAlarms = 1024

// idleAlarms asks a task for the alarms of a step that no longer have a reason. The task answers
// with the same type, in which only the idle alarms are left.
type idleAlarms struct {
	among alarmHeap
	reply *actor.PID
}

// hasManyAlarms reports whether there are enough alarms to make a search for idle ones worthwhile.
func (h *effectPerformer) hasManyAlarms() bool {
	return len(h.alarms) >= max(h.pruneAlarmsAt, manyAlarms)
}

// findIdleAlarms returns the alarms that no longer have a reason.
func (t *task) findIdleAlarms(among alarmHeap) alarmHeap {
	if t.loading || t.state == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(among), t.state.Awaits)
}

// dropAlarms removes alarms. An alarm that gets a reason again later is announced by the task in a
// new effect. So no alarm is lost, but the timer may fire without need.
func (h *effectPerformer) dropAlarms(idle alarmHeap) {
	gone := make(map[flow.Alarm]bool, len(idle))
	for _, a := range idle {
		gone[a] = true
	}
	h.alarms = slices.DeleteFunc(h.alarms, func(a flow.Alarm) bool { return gone[a] })
	heap.Init(&h.alarms)
	h.pruneAlarmsAt = 2 * len(h.alarms)
}

type alarmHeap []flow.Alarm

func (h *alarmHeap) pushAlarm(a flow.Alarm) { heap.Push(h, a) }

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].At < h[j].At }
func (h alarmHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *alarmHeap) Push(x any)        { *h = append(*h, x.(flow.Alarm)) }
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	*h = old[:len(old)-1]
	return a
}
