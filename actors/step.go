package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// step carries one active parallel, foreach, fan-out, subflow or branch: it dispatches its units' jobs and those of the
// plain steps inside it, keeps their deadlines, withdraws them, and hands what they report to the task together. Steps
// inside that have actors of their own are its children. It decides nothing.
type step struct {
	performer
	at     flow.Address
	asking bool // which of its alarms are idle
}

func (s *step) Receive(c actor.Context) {
	s.m.cfg.Host.probe("step", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		s.m.stepActors.Add(1)
		s.begin(c.Self(), flow.ChildScope(s.at), s.inbox)
	case share:
		s.take(c, m.effects)
		s.tidy(c)
	case gather:
		s.inbox.empty(func(landed []*flight) { s.inbox.decide(reportsOf(s.task, landed)) })
	case idleAlarms:
		s.drop(m.among)
		s.asking = false
	case respawn:
		s.respawn(c, m.at)
	case *flushing:
		s.passDown(c, m)
	case ring:
		for _, a := range s.due(s.m.now()) {
			c.Send(s.m.tasks, &command{task: s.task, cmd: flow.Ring{Alarm: a}})
		}
	case *actor.Stopping:
		s.close()
	case *actor.Stopped:
		s.m.stepActors.Add(-1)
	}
}

// take performs effects, and begins anew with what the step is owed where that is among them.
func (s *step) take(c actor.Context, effects []flow.Effect) {
	i := slices.IndexFunc(effects, func(e flow.Effect) bool {
		o, ok := e.(owed)
		return ok && o.Address == s.at
	})
	if i < 0 {
		s.perform(c, effects)
		return
	}
	s.perform(c, effects[:i])
	s.alarms = nil
	all := slices.DeleteFunc(effects[i].(owed).effects, s.isAround)
	c.Send(s.m.sessions, only{task: s.task, under: s.at, owed: all})
	s.perform(c, all)
	s.take(c, effects[i+1:])
}

// isAround says whether an effect is about the step itself: it is with the actor around, which does not forget it.
func (s *step) isAround(e flow.Effect) bool {
	a, unit := addressOf(e)
	return !unit && a == s.at
}

// tidy asks the task which alarms have no reason any more: a step knows no state.
func (s *step) tidy(c actor.Context) {
	if s.asking || !s.untidy() {
		return
	}
	s.asking = true
	c.Send(s.m.tasks, &ask{task: s.task, message: idleAlarms{slices.Clone(s.alarms), c.Self()}})
}
