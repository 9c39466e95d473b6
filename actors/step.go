package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// step is the actor of one active parallel, foreach, fan-out, subflow or branch. It dispatches the
// jobs of its units and of plain steps inside it, keeps their deadlines, withdraws them, and passes
// their reports to the task in batches. Nested steps with their own actors are its children. It
// makes no decisions.
type step struct {
	effectPerformer
	at               flow.Address
	idleQueryPending bool // the task is asked which alarms are idle
}

func (s *step) Receive(c actor.Context) {
	s.m.cfg.Host.callProbe("step", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		s.m.counts.stepActors.Add(1)
		s.bindActor(c.Self(), flow.ChildScope(s.at), s.inbox)
	case effectShare:
		s.performOwed(c, m.effects)
		s.requestIdleAlarms(c)
	case collectReports:
		s.inbox.takeReports(func(landed []*activeJob) { s.inbox.sendToOwner(reportsOf(s.task, landed)) })
	case idleAlarms:
		s.dropAlarms(m.among)
		s.idleQueryPending = false
	case respawnStep:
		s.respawnStep(c, m.at)
	case *stepFlush:
		s.flushChildren(c, m)
	case alarmsDue:
		for _, a := range s.takeDueAlarms(s.m.nowMillis()) {
			c.Send(s.m.tasks, &taskCommand{task: s.task, command: flow.Ring{Alarm: a}})
		}
	case *actor.Stopping:
		s.close()
	case *actor.Stopped:
		s.m.counts.stepActors.Add(-1)
	}
}

// performOwed performs effects. If outstandingEffects of this step are among them, it resets to
// those first.
func (s *step) performOwed(c actor.Context, effects []flow.Effect) {
	i := slices.IndexFunc(effects, func(e flow.Effect) bool {
		o, ok := e.(outstandingEffects)
		return ok && o.Address == s.at
	})
	if i < 0 {
		s.performEffects(c, effects)
		return
	}
	s.performEffects(c, effects[:i])
	s.alarms = nil
	all := slices.DeleteFunc(effects[i].(outstandingEffects).effects, s.isAround)
	c.Send(s.m.sessions, outstandingJobs{task: s.task, under: s.at, owed: all})
	s.performEffects(c, all)
	s.performOwed(c, effects[i+1:])
}

// isAround reports whether an effect concerns the step itself: the enclosing actor handles it and
// keeps it.
func (s *step) isAround(e flow.Effect) bool {
	a, unit := addressOf(e)
	return !unit && a == s.at
}

// requestIdleAlarms asks the task which alarms no longer have a reason, because a step has no
// state.
func (s *step) requestIdleAlarms(c actor.Context) {
	if s.idleQueryPending || !s.hasManyAlarms() {
		return
	}
	s.idleQueryPending = true
	c.Send(s.m.tasks, &taskMessage{task: s.task, message: idleAlarms{slices.Clone(s.alarms), c.Self()}})
}
