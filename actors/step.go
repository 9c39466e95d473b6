package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// step is the actor of one active parallel, foreach, fan-out, subflow or branch. It dispatches and
// withdraws the jobs of its units and of plain steps inside, and keeps their deadlines. It passes
// their reports to the task in batches. Nested steps with their own actors are its children. It
// makes no decisions.
type step struct {
	effectPerformer
	at               flow.Address
	idleQueryPending bool // a query for idle alarms is unanswered
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

// performOwed performs effects. If the effects contain outstandingEffects of this step, it first
// resets the step to these.
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

// isAround reports whether an effect concerns the step itself. Such an effect belongs to the
// enclosing actor.
func (s *step) isAround(e flow.Effect) bool {
	a, unit := addressOf(e)
	return !unit && a == s.at
}

// requestIdleAlarms asks the task which alarms are idle, because a step actor has no state of its
// own.
func (s *step) requestIdleAlarms(c actor.Context) {
	if s.idleQueryPending || !s.hasManyAlarms() {
		return
	}
	s.idleQueryPending = true
	c.Send(s.m.tasks, &taskMessage{task: s.task, message: idleAlarms{slices.Clone(s.alarms), c.Self()}})
}
