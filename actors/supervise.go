package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// manyCrashes is after how many crashes in a row a step is failed (reason `internal`) instead of being carried
// again.
const manyCrashes = 5

// backOff before the nth new try of something that crashed.
func backOff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 10), 30*time.Second)
}

// taskSupervisor is the supervisor of all task actors. They are no children of `tasks` in the library's
// sense: its set of children keeps every actor that ever was in it reachable.
type taskSupervisor struct{ m *Member }

// crashed tells tasks that one of them panicked; until it is stopped it only passes on what comes.
type crashed struct {
	pid    *actor.PID
	reason any
}

// storePause is the wait before the nth new try of what the store did not do. Few ask, and many wait for
// them: when the store is back, work is to go on at once.
func storePause(n int) time.Duration { return min(backOff(n), time.Second) }

// HandleFailure has a task actor that panicked pass on what is in its mailbox, until its parent stops it.
// The library would restart it at once, and give up after a few times; stopped at once it would leave
// those without an answer whose requests it had not come to.
func (w *taskSupervisor) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	supervisor.ResumeChildren(child)
	w.m.tell(w.m.tasks, crashed{child, reason})
}

// crashed has a task actor start again after a while, from the store.
func (t *tasks) crashed(c actor.Context, m crashed) {
	c.Poison(m.pid)
	e := t.byPID[m.pid.Id]
	if e == nil {
		return
	}
	t.crashes[e.id]++
	if spoiled, ok := m.reason.(*flow.SpoiledError); ok {
		t.lacks[e.id] = spoiled.Error()
		if errors.Is(spoiled, flow.ErrNoContent) { // it would be the same the next time
			t.crashes[e.id] = max(t.crashes[e.id], manyCrashes)
		}
	}
	n := t.crashes[e.id]
	t.m.log.Error("a task actor crashed", "task", e.id, "crashes", n, "reason", m.reason)
	if !t.m.owned.owns(e.id) {
		t.letGo(e)
		return
	}
	t.count(e.id, 1) // the pause
	t.forget(e)
	if n > 2*manyCrashes {
		t.m.log.Error("a task is left alone until somebody asks for it: it crashes whatever is done", "task", e.id)
	}
	p := &pause{}
	t.pauses[e.id] = p
	for _, message := range e.arrived {
		p.hold(message)
	}
	t.m.cfg.Host.Clock.AfterFunc(backOff(n), func() { t.m.tell(t.m.tasks, revive{e.id, p}) })
}

// letGo lets another member have a task whose actor has crashed on its way there, instead of trying again: nobody else's move
// is to wait for that.
func (t *tasks) letGo(e *entry) {
	delete(t.crashes, e.id)
	delete(t.lacks, e.id)
	for _, message := range e.arrived {
		t.elsewhere(message)
	}
	t.forget(e)
}

// pause is what comes for a task that has crashed until it may start again: nobody who asks makes that sooner.
type pause struct{ held []*command }

// maxHeld bounds how many requests wait for one such task. What jobs have reported is bounded by how many there were.
const maxHeld = 1000

// hold keeps what may wait. A claim may not: its poller would wait for a job that may crash again.
func (p *pause) hold(message any) {
	cmd, ok := message.(*command)
	switch {
	case !ok: // it was about the actor that crashed
	case isClaim(cmd) || len(p.held) >= maxHeld && !cmd.landed():
		cmd.answer(answer{err: errCrashed})
	default:
		p.held = append(p.held, cmd)
	}
}

func (p *pause) messages() []any {
	all := make([]any, len(p.held))
	for i, cmd := range p.held {
		all[i] = cmd
	}
	return all
}

func isClaim(cmd *command) bool {
	_, ok := cmd.cmd.(flow.Claim)
	return ok
}

// revive ends the pause. What was held is there before the next actor asks for the jobs of the task. A task that has crashed too often is only there for those who have asked.
func (t *tasks) revive(c actor.Context, id string) {
	p := t.pauses[id]
	if p == nil {
		return
	}
	delete(t.pauses, id)
	defer t.count(id, -1)
	waiting := p.held
	if t.crashes[id] <= 2*manyCrashes {
		waiting = slices.Insert(waiting, 0, &command{task: id, cmd: flow.Proceed{}})
	}
	switch {
	case t.resting:
		t.refuse(p.messages())
	case len(waiting) > 0:
		e := t.open(c, id, &task{performer: performer{m: t.m, task: id}, id: id, loading: true, waiting: waiting})
		if !t.m.owned.owns(id) {
			t.rest(e, true)
		}
	}
}

// errCrashed is the answer to whoever was waiting for an actor that crashed.
var errCrashed = flow.Errorf(flow.Busy, "the task's actor crashed while it was at this: it starts again from the store, ask again in a moment")

// HandleFailure stops a step actor that panicked and spawns another one after a while. One that keeps
// crashing fails its step, never the task's actor or the member.
func (t *task) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	t.performer.failed(supervisor, child, reason)
}

// HandleFailure of a step actor's children: as for those of a task.
func (s *step) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	s.performer.failed(supervisor, child, reason)
}

// soundFor is how long a step actor must go without a crash for the next one to count as the first.
const soundFor = time.Minute

func (h *performer) failed(supervisor actor.Supervisor, pid *actor.PID, reason any) {
	supervisor.StopChildren(pid)
	k := h.childOf(pid)
	if k == nil {
		return
	}
	now := h.m.now()
	if now-k.crashedAt > soundFor.Milliseconds() {
		k.crashes = 0
	}
	k.crashes, k.crashedAt, k.pid = k.crashes+1, now, nil
	k.inbox.belongs(nil)
	h.m.log.Error("a step actor crashed", "task", h.task, "step", k.at.String(), "crashes", k.crashes, "reason", reason)
	to, message := h.self, any(respawn{k.at})
	if k.crashes >= manyCrashes { // this one may be gone by then, too
		to, message = h.m.tasks, &command{task: h.task, cmd: keepsCrashing(k.at)}
	}
	h.m.cfg.Host.Clock.AfterFunc(backOff(k.crashes), func() { h.m.tell(to, message) })
}

// keepsCrashing fails a step.
func keepsCrashing(at flow.Address) flow.FailStep {
	return flow.FailStep{Address: at, Error: "the step's actor keeps crashing"}
}
