package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// performer performs effects once they are stored. A task and its step actors have one each: it dispatches and withdraws jobs, keeps
// alarms, and passes on what belongs to a step that has an actor of its own.
type performer struct {
	m        *Member
	task     string
	self     *actor.PID // that has it
	scope    string     // the scope whose steps it carries directly
	inbox    *inbox     // where its jobs land
	children map[flow.Address]*child
	inside   map[string]*child // the same by the scope of what is below them
	alarms   alarmHeap
	tidyAt   int // how many alarms there are when they are looked through the next time
	timer    *timer
	closed   bool // spawning while stopping would hang the stop for ever
}

// child is a step actor.
type child struct {
	at        flow.Address
	inbox     *inbox
	pid       *actor.PID // nil while it is away after a crash
	crashes   int        // in a row
	crashedAt int64
	share     share
}

// Messages to step actors and from them.
type (
	ring    struct{}
	respawn struct{ at flow.Address }
	// outstanding asks a task what a step and everything below it is owed. Its answer is an effect, owed.
	outstanding struct{ at flow.Address }
)

// owed is everything that a step and what is below it is owed; whatever else was asked for there is void. It has its
// place among the effects that a task releases, because it tells of the state between them.
type owed struct {
	flow.Spawn // of the step
	effects    []flow.Effect
}

func (h *performer) begin(self *actor.PID, scope string, in *inbox) {
	h.self, h.scope, h.inbox = self, scope, in
	h.timer = newTimer(func() { h.m.tell(self, ring{}) })
	in.belongs(self)
}

// perform does what effects ask for, in order. Those for a child go to it together.
func (h *performer) perform(c actor.Context, effects []flow.Effect) {
	last := h.letGo(c, effects)
	var own share
	var touched []*child
	for i, e := range effects {
		k := h.carrierOf(e)
		switch {
		case k == nil && aboutJob(e):
			own.add(effects, i)
		case k == nil:
			h.do(c, e, i < last.end || i < last.of[spawned(e)])
		case k.pid != nil || aboutJob(e):
			if k.share.effects == nil {
				touched = append(touched, k)
			}
			k.share.add(effects, i)
		}
	}
	h.send(c, own.effects)
	for _, k := range touched {
		h.pass(c, k)
	}
	h.arm()
}

// pass gives a child its share of effects. One that is away asks for everything when it is back, but what is to be
// withdrawn does not wait for it.
func (h *performer) pass(c actor.Context, k *child) {
	mine := k.share
	k.share = share{}
	if k.pid != nil {
		c.Send(k.pid, mine)
		return
	}
	for i, e := range mine.effects {
		if _, ok := e.(flow.Dispatch); !ok {
			h.send(c, mine.effects[i:i+1])
		}
	}
}

// send has the sessions dispatch and withdraw jobs.
func (h *performer) send(c actor.Context, effects []flow.Effect) {
	if concernsSessions(effects) {
		c.Send(h.m.sessions, errand{task: h.task, effects: effects, inbox: h.inbox})
	}
}

// concernsSessions says whether there is anything to dispatch or withdraw: most ends of attempts are only noted.
func concernsSessions(effects []flow.Effect) bool {
	for _, e := range effects {
		switch e := e.(type) {
		case flow.Dispatch, flow.Reclaim, flow.Withdraw:
			return true
		case flow.Over:
			if e.Queue {
				return true
			}
		}
	}
	return false
}

// share is a part of some effects, in their order: a child's is what it is sent. A run of them is not copied.
type share struct {
	effects []flow.Effect
	end     int // of the run; 0 = it is a copy
}

func (s *share) add(all []flow.Effect, i int) {
	switch {
	case s.effects == nil:
		s.effects, s.end = all[i:i+1:i+1], i+1
	case s.end == i:
		s.effects, s.end = all[i-len(s.effects):i+1:i+1], i+1
	default:
		s.effects, s.end = append(s.effects, all[i]), 0
	}
}

// ends says which steps end where in a list of effects.
type ends struct {
	of  map[flow.Address]int // the last Prune of each
	end int                  // of the task
}

// letGo stops the actors of the steps that end with these effects, before they are performed: a child that is stopped
// may never come to what is in its mailbox, so what is to be withdrawn there goes straight to the sessions. Those take
// nothing from an inbox that is closed, so no job overtakes its withdrawal. What is dispatched and withdrawn by the same
// effects comes after the word that nothing is owed.
func (h *performer) letGo(c actor.Context, effects []flow.Effect) (last ends) {
	for i, e := range effects {
		switch e := e.(type) {
		case flow.Prune:
			if last.of == nil {
				last.of = map[flow.Address]int{}
			}
			last.of[e.Address] = i
			h.prune(c, e.Address)
		case flow.Ended:
			last.end = i
			h.pruneAll(c)
		}
	}
	return last
}

// carrierOf an effect is the child whose step it is about, or is inside of. Jobs for pollers have none: they are in the
// store already, and who is answered now is to find them.
func (h *performer) carrierOf(e flow.Effect) *child {
	if len(h.children) == 0 || aboutQueue(e) {
		return nil
	}
	a, unit := addressOf(e)
	if unit {
		if k := h.children[flow.Address{Scope: a.Scope, Node: a.Node, Visit: a.Visit}]; k != nil {
			return k
		}
	}
	for i := len(h.scope) + 1; i < len(a.Scope); i++ {
		n := strings.IndexByte(a.Scope[i:], '/')
		if n < 0 {
			return h.inside[a.Scope]
		}
		i += n
		if k := h.inside[a.Scope[:i]]; k != nil {
			return k
		}
	}
	return nil
}

func aboutJob(e flow.Effect) bool {
	switch e.(type) {
	case flow.Dispatch, flow.Reclaim, flow.Over, flow.Withdraw:
		return true
	}
	return false
}

func aboutQueue(e flow.Effect) bool {
	switch e := e.(type) {
	case flow.Dispatch:
		return e.Job.Exec.Type == flow.ExecQueue
	case flow.Over:
		return e.Queue
	case flow.Withdraw:
		return e.Queue
	}
	return false
}

// addressOf an effect; unit says that it is about a unit, or what is inside the step, not about the step itself.
func addressOf(e flow.Effect) (a flow.Address, unit bool) {
	switch e := e.(type) {
	case flow.Dispatch:
		return e.Job.Address, true
	case flow.Reclaim:
		return e.Job.Address, true
	case flow.Over:
		return e.Address, true
	case flow.Withdraw:
		return e.Address, true
	case flow.Alarm:
		return e.Address, e.Kind == flow.AlarmAttempt || e.Kind == flow.AlarmClaim || e.Kind == flow.AlarmRetry || e.Kind == flow.AlarmUnclaimed
	case owed:
		return e.Address, true
	case flow.Spawn:
		return e.Address, false
	case flow.Prune:
		return e.Address, false
	}
	return flow.Address{}, false
}

func spawned(e flow.Effect) flow.Address {
	if e, ok := e.(flow.Spawn); ok {
		return e.Address
	}
	return flow.Address{}
}

// do performs an effect that is not about a job. Brief is what ends again further on.
func (h *performer) do(c actor.Context, e flow.Effect, brief bool) {
	switch e := e.(type) {
	case flow.Alarm:
		h.alarms.add(e)
	case flow.Spawn:
		if !brief {
			h.spawn(c, e.Address)
		}
	case flow.Track, flow.Recall:
		h.m.externals.look()
	case flow.Adrift:
		h.m.externals.adrift(e.Jobs)
	case flow.Ask:
		h.m.limiter.stir(e.Key, false)
	case flow.Release:
		if !e.Used {
			h.m.limiter.stir(e.Key, false)
		}
	}
}

func (h *performer) spawn(c actor.Context, at flow.Address) {
	if h.closed {
		return
	}
	k := h.children[at]
	if k == nil {
		k = &child{at: at, inbox: h.inbox.inside()}
		if h.children == nil {
			h.children, h.inside = map[flow.Address]*child{}, map[string]*child{}
		}
		h.children[at], h.inside[flow.ChildScope(at)] = k, k
	}
	if k.pid == nil {
		s := &step{at: at, performer: performer{m: h.m, task: h.task, inbox: k.inbox}}
		k.pid = c.Spawn(h.m.props(func() actor.Actor { return s }))
	}
}

// respawn brings a crashed step actor back, with all it is owed. What has landed meanwhile is told first.
func (h *performer) respawn(c actor.Context, at flow.Address) {
	k := h.children[at]
	if k == nil || k.pid != nil {
		return
	}
	k.inbox.drain(func(landed []*flight) { h.inbox.decide(reportsOf(h.task, landed)) }, true)
	h.spawn(c, at)
	if owner := h.inbox.owner.Load(); owner != nil {
		h.m.tell(owner, outstanding{at})
	}
}

func (h *performer) childOf(pid *actor.PID) *child {
	for _, k := range h.children {
		if k.pid != nil && k.pid.Id == pid.Id {
			return k
		}
	}
	return nil
}

// prune stops the actor of a step that is over. Withdrawals of before may be lost with its mailbox, or those of steps
// inside: the sessions are told that nothing is owed there any more.
func (h *performer) prune(c actor.Context, at flow.Address) {
	if k := h.children[at]; k != nil {
		h.stop(c, k)
		c.Send(h.m.sessions, only{task: h.task, under: at})
	}
}

func (h *performer) pruneAll(c actor.Context) {
	for _, at := range h.stepsAt() {
		h.prune(c, at)
	}
}

// stop lets go of a step actor.
func (h *performer) stop(c actor.Context, k *child) {
	k.inbox.close()
	if k.pid != nil {
		c.Stop(k.pid)
	}
	delete(h.children, k.at)
	delete(h.inside, flow.ChildScope(k.at))
}

// stepsAt are the steps that have actors, in an order that is always the same.
func (h *performer) stepsAt() []flow.Address {
	return slices.SortedFunc(maps.Keys(h.children), flow.Address.Compare)
}

// reset lets go of everything but what has landed: the actor has forgotten its state.
func (h *performer) reset(c actor.Context, landed func([]*flight)) {
	h.inbox.drain(landed, true)
	for _, at := range h.stepsAt() {
		h.stop(c, h.children[at])
	}
	h.alarms = nil
	h.arm()
}

func (h *performer) close() {
	h.closed = true
	h.m.timers.set(h.timer, 0)
}
