package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// manyCrashes is after how many crashes in a row a step is failed (reason `internal`) instead of
// being carried again.
const manyCrashes = 5

// backOff before the nth new try of something that crashed.
func backOff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 10), 30*time.Second)
}

// taskSupervisor is the supervisor of all task actors. They are no children of `tasks` in the
// library's sense: its set of children keeps every actor that ever was in it reachable.
type taskSupervisor struct{ m *Member }

// taskCrashed tells tasks that one of them panicked; until it is stopped it only passes on what
// comes.
type taskCrashed struct {
	pid    *actor.PID
	reason any
}

// storePause is the wait before the nth new try of what the store did not do. Few ask, and many
// wait for them: when the store is back, work is to go on at once.
func storePause(n int) time.Duration { return min(backOff(n), time.Second) }

// HandleFailure has a task actor that panicked pass on what is in its mailbox, until its parent
// stops it. The library would restart it at once, and give up after a few times; stopped at once it
// would leave those without an answer whose requests it had not come to.
func (w *taskSupervisor) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	supervisor.ResumeChildren(child)
	w.m.sendMessage(w.m.tasks, taskCrashed{child, reason})
}

// restartCrashed has a task actor start again after a while, from the store.
func (t *tasks) restartCrashed(c actor.Context, m taskCrashed) {
	c.Poison(m.pid)
	e := t.byPID[m.pid.Id]
	if e == nil {
		return
	}
	t.crashes[e.id]++
	if spoiled, ok := m.reason.(*flow.SpoiledError); ok {
		t.missingValues[e.id] = spoiled.Error()
		if errors.Is(spoiled, flow.ErrNoContent) { // it would be the same the next time
			t.crashes[e.id] = max(t.crashes[e.id], manyCrashes)
		}
	}
	n := t.crashes[e.id]
	t.m.log.Error("a task actor crashed", "task", e.id, "crashes", n, "reason", m.reason)
	if !t.m.owned.ownsTask(e.id) {
		t.dropMovedTask(e)
		return
	}
	t.countInMemory(e.id, 1) // the pause
	t.forgetTask(e)
	if n > 2*manyCrashes {
		t.m.log.Error("a task is left alone until somebody asks for it: it crashes whatever is done", "task", e.id)
	}
	p := &crashPause{}
	t.pauses[e.id] = p
	for _, message := range e.arrived {
		p.holdMessage(message)
	}
	t.m.cfg.Host.Clock.AfterFunc(backOff(n), func() { t.m.sendMessage(t.m.tasks, reviveTask{e.id, p}) })
}

// dropMovedTask lets another member have a task whose actor has crashed on its way there, instead
// of trying again: nobody else's move is to wait for that.
func (t *tasks) dropMovedTask(e *taskEntry) {
	delete(t.crashes, e.id)
	delete(t.missingValues, e.id)
	for _, message := range e.arrived {
		t.redirectMessage(message)
	}
	t.forgetTask(e)
}

// crashPause is what comes for a task that has crashed until it may start again: nobody who asks
// makes that sooner.
type crashPause struct{ held []*taskCommand }

// maxHeld bounds how many requests wait for one such task. What jobs have reported is bounded by
// how many there were.
const maxHeld = 1000

// holdMessage keeps what may wait. A claim may not: its poller would wait for a job that may crash
// again.
func (p *crashPause) holdMessage(message any) {
	cmd, ok := message.(*taskCommand)
	switch {
	case !ok: // it was about the actor that crashed
	case isClaim(cmd) || len(p.held) >= maxHeld && !cmd.isJobReport():
		cmd.sendAnswer(commandAnswer{err: errCrashed})
	default:
		p.held = append(p.held, cmd)
	}
}

func (p *crashPause) heldMessages() []any {
	all := make([]any, len(p.held))
	for i, cmd := range p.held {
		all[i] = cmd
	}
	return all
}

func isClaim(cmd *taskCommand) bool {
	_, ok := cmd.command.(flow.Claim)
	return ok
}

// reviveTask ends the pause. What was held is there before the next actor asks for the jobs of the
// task. A task that has crashed too often is only there for those who have asked.
func (t *tasks) reviveTask(c actor.Context, id string) {
	p := t.pauses[id]
	if p == nil {
		return
	}
	delete(t.pauses, id)
	defer t.countInMemory(id, -1)
	waiting := p.held
	if t.crashes[id] <= 2*manyCrashes {
		waiting = slices.Insert(waiting, 0, &taskCommand{task: id, command: flow.Proceed{}})
	}
	switch {
	case t.resting:
		t.refuseMessages(p.heldMessages())
	case len(waiting) > 0:
		e := t.openTask(c, id, &task{effectPerformer: effectPerformer{m: t.m, task: id}, id: id, loading: true, waiting: waiting})
		if !t.m.owned.ownsTask(id) {
			t.askToRest(e, true)
		}
	}
}

// errCrashed is the answer to whoever was waiting for an actor that crashed.
var errCrashed = flow.Errorf(flow.Busy, "the task's actor crashed while it was at this: it starts again from the store, ask again in a moment")

// HandleFailure stops a step actor that panicked and spawns another one after a while. One that
// keeps crashing fails its step, never the task's actor or the member.
func (t *task) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	t.effectPerformer.handleStepCrash(supervisor, child, reason)
}

// HandleFailure of a step actor's children: as for those of a task.
func (s *step) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	s.effectPerformer.handleStepCrash(supervisor, child, reason)
}

// crashResetAfter is how long a step actor must go without a crash for the next one to count as the
// first.
const crashResetAfter = time.Minute

func (h *effectPerformer) handleStepCrash(supervisor actor.Supervisor, pid *actor.PID, reason any) {
	supervisor.StopChildren(pid)
	k := h.childOf(pid)
	if k == nil {
		return
	}
	now := h.m.nowMillis()
	if now-k.crashedAt > crashResetAfter.Milliseconds() {
		k.crashes = 0
	}
	k.crashes, k.crashedAt, k.pid = k.crashes+1, now, nil
	k.inbox.setActor(nil)
	h.m.log.Error("a step actor crashed", "task", h.task, "step", k.at.String(), "crashes", k.crashes, "reason", reason)
	to, message := h.self, any(respawnStep{k.at})
	if k.crashes >= manyCrashes { // this one may be gone by then, too
		to, message = h.m.tasks, &taskCommand{task: h.task, command: failCrashingStep(k.at)}
	}
	h.m.cfg.Host.Clock.AfterFunc(backOff(k.crashes), func() { h.m.sendMessage(to, message) })
}

// failCrashingStep fails a step.
func failCrashingStep(at flow.Address) flow.FailStep {
	return flow.FailStep{Address: at, Error: "the step's actor keeps crashing"}
}
