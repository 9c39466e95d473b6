package actors

import (
	"container/heap"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// hands perform effects once they are stored. A task and its step actors have them: alarms go into a
// heap of their own, what belongs to a step below goes to its actor. Jobs go to the sessions straight
// from the task: what is withdrawn must not be overtaken, or lost with a step actor that is stopped.
type hands struct {
	m        *Member
	task     string
	owner    *actor.PID // whose hands they are
	scope    string     // the scope whose steps they carry directly
	children []*child
	alarms   alarmHeap
	tidyAt   int // how many alarms there are when they are looked through the next time
	timer    *timer
	closed   bool // spawning while stopping would hang the stop for ever
}

// child is a step actor.
type child struct {
	at      flow.Address
	scope   string // of what is below it
	pid     *actor.PID
	crashes int
}

// Messages to step actors and from them.
type (
	carry   struct{ effects []flow.Effect }
	ring    struct{}
	respawn struct{ at flow.Address }
	// outstanding asks a task what a step and everything below it is owed.
	outstanding struct {
		at    flow.Address
		reply *actor.PID
	}
)

func (h *hands) begin(m *Member, task, scope string, owner *actor.PID) {
	h.m, h.task, h.scope, h.owner = m, task, scope, owner
	h.timer = newTimer(func() { m.tell(owner, ring{}) })
}

// perform does what effects ask for, in order.
func (h *hands) perform(c actor.Context, effects []flow.Effect) {
	for i := 0; i < len(effects); {
		below, n := h.below(effects[i:])
		if below == nil {
			h.do(c, effects[i])
			i++
			continue
		}
		if below.pid != nil { // else it has crashed and asks for everything when it is back
			c.Send(below.pid, carry{effects[i : i+n]})
		}
		i += n
	}
	h.arm()
}

// below finds the child that carries the first effects, and how many of them in a row.
func (h *hands) below(effects []flow.Effect) (*child, int) {
	if len(h.children) == 0 {
		return nil, 0
	}
	first := h.carrierOf(effects[0])
	if first == nil {
		return nil, 0
	}
	n := 1
	for n < len(effects) && h.carrierOf(effects[n]) == first {
		n++
	}
	return first, n
}

func (h *hands) carrierOf(e flow.Effect) *child {
	if aboutJob(e) {
		return nil
	}
	a, unit := addressOf(e)
	for _, k := range h.children {
		if unit && a.Scope == k.at.Scope && a.Node == k.at.Node && a.Visit == k.at.Visit {
			return k
		}
		if a.Scope == k.scope || strings.HasPrefix(a.Scope, k.scope) && a.Scope[len(k.scope)] == '/' {
			return k
		}
	}
	return nil
}

func aboutJob(e flow.Effect) bool {
	switch e.(type) {
	case flow.Dispatch, flow.Over, flow.Withdraw:
		return true
	}
	return false
}

// addressOf an effect; unit says that it is about a unit, not about the step itself.
func addressOf(e flow.Effect) (a flow.Address, unit bool) {
	switch e := e.(type) {
	case flow.Alarm:
		return e.Address, e.Kind == flow.AlarmAttempt || e.Kind == flow.AlarmClaim || e.Kind == flow.AlarmRetry
	case flow.Spawn:
		return e.Address, false
	case flow.Prune:
		return e.Address, false
	}
	return flow.Address{}, false
}

func (h *hands) do(c actor.Context, e flow.Effect) {
	switch e := e.(type) {
	case flow.Dispatch:
		c.Send(h.m.sessions, &flight{job: e.Job, owner: h.owner})
	case flow.Over:
		if e.Queue {
			c.Send(h.m.sessions, withdraw{jobKey{h.task, e.Address}})
		}
	case flow.Withdraw:
		c.Send(h.m.sessions, withdraw{jobKey{h.task, e.Address}})
	case flow.Alarm:
		heap.Push(&h.alarms, e)
	case flow.Spawn:
		h.spawn(c, e.Address)
	case flow.Prune:
		h.prune(c, e.Address)
	}
}

func (h *hands) spawn(c actor.Context, at flow.Address) {
	if h.closed {
		return
	}
	k := h.child(at)
	if k == nil {
		k = &child{at: at, scope: flow.ChildScope(at)}
		h.children = append(h.children, k)
	}
	if k.pid == nil {
		s := &step{at: at, crashes: k.crashes, parent: c.Self()}
		s.m, s.task = h.m, h.task
		k.pid = c.Spawn(h.m.props(func() actor.Actor { return s }))
	}
}

// respawn brings a crashed step actor back, with all it is owed.
func (h *hands) respawn(c actor.Context, at flow.Address) {
	k := h.child(at)
	if k == nil || k.pid != nil {
		return
	}
	h.spawn(c, at)
	if k.pid != nil {
		h.m.tell(h.m.tasks, &ask{task: h.task, message: outstanding{at, k.pid}})
	}
}

func (h *hands) child(at flow.Address) *child {
	for _, k := range h.children {
		if k.at == at {
			return k
		}
	}
	return nil
}

func (h *hands) childOf(pid *actor.PID) *child {
	for _, k := range h.children {
		if k.pid != nil && k.pid.Id == pid.Id {
			return k
		}
	}
	return nil
}

func (h *hands) prune(c actor.Context, at flow.Address) {
	for i, k := range h.children {
		if k.at == at {
			if k.pid != nil {
				c.Stop(k.pid)
			}
			h.children = append(h.children[:i], h.children[i+1:]...)
			return
		}
	}
}

// reset lets go of everything: the actor has forgotten its state.
func (h *hands) reset(c actor.Context) {
	for len(h.children) > 0 {
		h.prune(c, h.children[0].at)
	}
	h.alarms = nil
	h.arm()
}

func (h *hands) close() {
	h.closed = true
	h.m.timers.set(h.timer, 0)
}

// arm sets the timer to the earliest alarm.
func (h *hands) arm() {
	at := int64(0)
	if len(h.alarms) > 0 {
		at = h.alarms[0].At
	}
	h.m.timers.set(h.timer, at)
}

// due takes the alarms whose time has come.
func (h *hands) due(now int64) []flow.Alarm {
	var due []flow.Alarm
	for len(h.alarms) > 0 && h.alarms[0].At <= now {
		due = append(due, heap.Pop(&h.alarms).(flow.Alarm))
	}
	h.arm()
	return due
}

type alarmHeap []flow.Alarm

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
