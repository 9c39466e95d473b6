package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
)

// effectPerformer performs stored effects. A task and each of its step actors have one. It
// dispatches and withdraws jobs, keeps alarms, and passes on effects that belong to a step with an
// actor of its own.
type effectPerformer struct {
	m               *Member
	task            string
	self            *actor.PID // actor of this performer
	scope           string     // scope of the steps that the actor handles directly
	inbox           *inbox     // inbox for reports of its jobs
	children        map[flow.Address]*stepChild
	childrenByScope map[string]*stepChild // children by the scope inside their step
	alarms          alarmHeap
	pruneAlarmsAt   int // number of alarms at which idle ones are next removed
	timer           *background.Timer
	closed          bool // no actor may be spawned, since that would block the stop of this actor
}

// stepChild is a step actor below this actor.
type stepChild struct {
	at        flow.Address
	inbox     *inbox
	pid       *actor.PID // nil while it is restarting after a crash
	crashes   int        // consecutive crashes
	crashedAt int64
	share     effectShare
}

// Messages to and from step actors.
type (
	alarmsDue   struct{}
	respawnStep struct{ at flow.Address }
	// queryOutstanding asks a task for the outstanding effects of a step and everything below it.
	// The answer is an effect, outstandingEffects.
	queryOutstanding struct{ at flow.Address }
)

// outstandingEffects are all outstanding effects of a step and everything below it. It replaces all
// earlier effects. It is sent in order with other effects, because it describes the state at its
// position.
type outstandingEffects struct {
	flow.Spawn // effect that spawns the step
	effects    []flow.Effect
}

func (h *effectPerformer) bindActor(self *actor.PID, scope string, in *inbox) {
	h.self, h.scope, h.inbox = self, scope, in
	h.timer = background.NewTimer(func() { h.m.sendMessage(self, alarmsDue{}) })
	in.setActor(self)
}

// performEffects performs effects in order. The effects for one child are sent to it together.
func (h *effectPerformer) performEffects(c actor.Context, effects []flow.Effect) {
	last := h.stopEndedSteps(c, effects)
	var own effectShare
	var touched []*stepChild
	for i, e := range effects {
		k := h.childForEffect(e)
		switch {
		case k == nil && isJobEffect(e):
			own.addEffect(effects, i)
		case k == nil:
			h.performDirectly(c, e, i < last.taskEnd || i < last.byStep[spawnedStep(e)])
		case k.pid != nil || isJobEffect(e):
			if k.share.effects == nil {
				touched = append(touched, k)
			}
			k.share.addEffect(effects, i)
		}
	}
	h.sendJobEffects(c, own.effects)
	for _, k := range touched {
		h.sendShare(c, k)
	}
	h.armTimer()
}

// sendShare sends a child its share of the effects. A restarting child asks for all its effects
// later, so only withdrawals are sent on at once.
func (h *effectPerformer) sendShare(c actor.Context, k *stepChild) {
	mine := k.share
	k.share = effectShare{}
	if k.pid != nil {
		c.Send(k.pid, mine)
		return
	}
	for i, e := range mine.effects {
		if _, ok := e.(flow.Dispatch); !ok {
			h.sendJobEffects(c, mine.effects[i:i+1])
		}
	}
}

// sendJobEffects passes dispatches and withdrawals of jobs to the sessions actor.
func (h *effectPerformer) sendJobEffects(c actor.Context, effects []flow.Effect) {
	if concernsSessions(effects) {
		c.Send(h.m.sessions, jobErrand{task: h.task, effects: effects, inbox: h.inbox})
	}
}

// concernsSessions reports whether effects contain a message for the sessions actor. Most ends of
// attempts do not.
func concernsSessions(effects []flow.Effect) bool {
	for _, e := range effects {
		switch e := e.(type) {
		case flow.Dispatch, flow.Reclaim, flow.Withdraw, flow.WaitEnded:
			return true
		case flow.Over:
			if e.Queue {
				return true
			}
		}
	}
	return false
}

// effectShare is a part of a list of effects, in order. A contiguous run of effects is not copied.
type effectShare struct {
	effects []flow.Effect
	end     int // end position of the run in the list; 0 if the share is a copy
}

func (s *effectShare) addEffect(all []flow.Effect, i int) {
	switch {
	case s.effects == nil:
		s.effects, s.end = all[i:i+1:i+1], i+1
	case s.end == i:
		s.effects, s.end = all[i-len(s.effects):i+1:i+1], i+1
	default:
		s.effects, s.end = append(s.effects, all[i]), 0
	}
}

// stepEnds stores the positions in a list of effects at which steps end.
type stepEnds struct {
	byStep  map[flow.Address]int // position of the last Prune of each step
	taskEnd int                  // position of the task's end
}

// stopEndedSteps stops the actors of the steps that end with these effects, before the effects are
// performed. A stopped child may not read its mailbox, so withdrawals go directly to the sessions
// actor. That actor dispatches nothing for a closed inbox, so no job overtakes its withdrawal.
// Dispatches and withdrawals of the same effects follow after the notice that the step needs no
// jobs.
func (h *effectPerformer) stopEndedSteps(c actor.Context, effects []flow.Effect) (last stepEnds) {
	for i, e := range effects {
		switch e := e.(type) {
		case flow.Prune:
			if last.byStep == nil {
				last.byStep = map[flow.Address]int{}
			}
			last.byStep[e.Address] = i
			h.pruneStep(c, e.Address)
		case flow.Ended:
			last.taskEnd = i
			h.pruneAll(c)
		}
	}
	return last
}

// childForEffect returns the child that handles an effect: the child of its step or of an enclosing
// step. Effects of poller jobs have no child, because their jobs must go to the queue at once.
func (h *effectPerformer) childForEffect(e flow.Effect) *stepChild {
	if len(h.children) == 0 || isQueueEffect(e) {
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
			return h.childrenByScope[a.Scope]
		}
		i += n
		if k := h.childrenByScope[a.Scope[:i]]; k != nil {
			return k
		}
	}
	return nil
}

func isJobEffect(e flow.Effect) bool {
	switch e.(type) {
	case flow.Dispatch, flow.Reclaim, flow.Over, flow.Withdraw, flow.WaitEnded:
		return true
	}
	return false
}

func isQueueEffect(e flow.Effect) bool {
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

// addressOf returns the address of an effect. unit reports whether the effect concerns a unit or
// the inside of the step, instead of the step itself.
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
	case flow.WaitEnded:
		return e.Address, true
	case flow.Alarm:
		return e.Address, e.Kind == flow.AlarmAttempt || e.Kind == flow.AlarmClaim ||
			e.Kind == flow.AlarmRetry || e.Kind == flow.AlarmUnclaimed
	case outstandingEffects:
		return e.Address, true
	case flow.Spawn:
		return e.Address, false
	case flow.Prune:
		return e.Address, false
	}
	return flow.Address{}, false
}

func spawnedStep(e flow.Effect) flow.Address {
	if e, ok := e.(flow.Spawn); ok {
		return e.Address
	}
	return flow.Address{}
}

// performDirectly performs an effect that is not about a job. If brief is true, the step ends later
// in the same effects.
func (h *effectPerformer) performDirectly(c actor.Context, e flow.Effect, brief bool) {
	switch e := e.(type) {
	case flow.Alarm:
		h.alarms.pushAlarm(e)
	case flow.Spawn:
		if !brief {
			h.spawnStep(c, e.Address)
		}
	case flow.Track, flow.Recall:
		h.m.externals.TriggerRead()
	case flow.Adrift:
		h.m.externals.CancelOrphaned(e.Jobs)
	case flow.Ask:
		h.m.limiter.NotifyKeyChange(e.Key, false)
	case flow.Release:
		if !e.Used {
			h.m.limiter.NotifyKeyChange(e.Key, false)
		}
	}
}

func (h *effectPerformer) spawnStep(c actor.Context, at flow.Address) {
	if h.closed {
		return
	}
	k := h.children[at]
	if k == nil {
		k = &stepChild{at: at, inbox: h.inbox.addChild()}
		if h.children == nil {
			h.children, h.childrenByScope = map[flow.Address]*stepChild{}, map[string]*stepChild{}
		}
		h.children[at], h.childrenByScope[flow.ChildScope(at)] = k, k
	}
	if k.pid == nil {
		s := &step{at: at, effectPerformer: effectPerformer{m: h.m, task: h.task, inbox: k.inbox}}
		k.pid = c.Spawn(h.m.actorProps(func() actor.Actor { return s }))
	}
}

// respawnStep restarts a crashed step actor with all its outstanding effects. Reports that arrived
// meanwhile first go to the task.
func (h *effectPerformer) respawnStep(c actor.Context, at flow.Address) {
	k := h.children[at]
	if k == nil || k.pid != nil {
		return
	}
	k.inbox.drainReports(func(landed []*activeJob) { h.inbox.sendToOwner(reportsOf(h.task, landed)) }, true)
	h.spawnStep(c, at)
	if owner := h.inbox.taskOwner.Load(); owner != nil {
		h.m.sendMessage(owner, queryOutstanding{at})
	}
}

func (h *effectPerformer) childOf(pid *actor.PID) *stepChild {
	for _, k := range h.children {
		if k.pid != nil && k.pid.Id == pid.Id {
			return k
		}
	}
	return nil
}

// pruneStep stops the actor of a step that has ended. Withdrawals in the mailbox of the actor or
// its children may be lost. So pruneStep also notifies the sessions actor that the step needs no
// jobs anymore.
func (h *effectPerformer) pruneStep(c actor.Context, at flow.Address) {
	if k := h.children[at]; k != nil {
		h.stopStep(c, k)
		c.Send(h.m.sessions, outstandingJobs{task: h.task, under: at})
	}
}

func (h *effectPerformer) pruneAll(c actor.Context) {
	for _, at := range h.stepsAt() {
		h.pruneStep(c, at)
	}
}

// stopStep stops and removes a step actor.
func (h *effectPerformer) stopStep(c actor.Context, k *stepChild) {
	k.inbox.close()
	if k.pid != nil {
		c.Stop(k.pid)
	}
	delete(h.children, k.at)
	delete(h.childrenByScope, flow.ChildScope(k.at))
}

// stepsAt returns the addresses of the steps that have actors, in sorted order.
func (h *effectPerformer) stepsAt() []flow.Address {
	return slices.SortedFunc(maps.Keys(h.children), flow.Address.Compare)
}

// resetPerformer drops all state except reports, which it passes to landed.
func (h *effectPerformer) resetPerformer(c actor.Context, landed func([]*activeJob)) {
	h.inbox.drainReports(landed, true)
	for _, at := range h.stepsAt() {
		h.stopStep(c, h.children[at])
	}
	h.alarms = nil
	h.armTimer()
}

func (h *effectPerformer) close() {
	h.closed = true
	h.m.timers.Set(h.timer, 0)
}
