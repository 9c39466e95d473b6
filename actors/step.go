package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// step carries one active parallel, foreach or subflow: its units' jobs, their deadlines, and the
// step actors below it. It decides nothing: what its alarms say goes to the task.
type step struct {
	hands
	at      flow.Address
	parent  *actor.PID
	crashes int
	asking  bool // which of its alarms are idle
}

func (s *step) Receive(c actor.Context) {
	s.m.cfg.Host.probe("step", c.Message())
	switch m := c.Message().(type) {
	case *actor.Started:
		s.m.actorCount[1].Add(1)
		s.begin(s.m, s.task, flow.ChildScope(s.at), c.Self())
	case carry:
		s.perform(c, m.effects)
		s.tidy(c)
	case idleAlarms:
		s.drop(m.among)
		s.asking = false
	case respawn:
		s.respawn(c, m.at)
	case ring:
		for _, a := range s.due(s.m.now()) {
			c.Send(s.m.tasks, &command{task: s.task, cmd: flow.Ring{Alarm: a}})
		}
	case *command: // of a child that keeps crashing
		c.Send(s.m.tasks, m)
	case *actor.Stopping:
		s.close()
	case *actor.Stopped:
		s.m.actorCount[1].Add(-1)
	}
}

// tidy asks the task which alarms have no reason any more: a step knows no state.
func (s *step) tidy(c actor.Context) {
	if s.asking || !s.untidy() {
		return
	}
	s.asking = true
	c.Send(s.m.tasks, &ask{task: s.task, message: idleAlarms{slices.Clone(s.alarms), c.Self()}})
}
