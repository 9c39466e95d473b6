package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
)

// manyCrashes is the number of consecutive crashes after which a step fails with the reason
// `internal` instead of being restarted.
const manyCrashes = 5

// taskSupervisor is the supervisor of all task actors. Task actors are not library children of
// `tasks`, because the library keeps every former child in memory.
type taskSupervisor struct{ m *Member }

// taskCrashed reports to the tasks actor that a task actor panicked. The crashed actor only
// forwards messages until it is stopped.
type taskCrashed struct {
	pid    *actor.PID
	reason any
}

// HandleFailure resumes a task actor that panicked, so that it forwards the messages in its mailbox
// until its parent stops it. An immediate stop would leave these requests without an answer. The
// library's default would restart the actor at once and give up after a few times.
func (w *taskSupervisor) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor,
	child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	supervisor.ResumeChildren(child)
	w.m.sendMessage(w.m.tasks, taskCrashed{child, reason})
}

// restartCrashed restarts a task actor from the store after a pause.
func (t *tasks) restartCrashed(c actor.Context, m taskCrashed) {
	c.Poison(m.pid)
	e := t.byPID[m.pid.Id]
	if e == nil {
		return
	}
	t.crashes[e.id]++
	if spoiled, ok := m.reason.(*flow.SpoiledError); ok {
		t.missingValues[e.id] = spoiled.Error()
		if errors.Is(spoiled, flow.ErrNoContent) { // a restart would fail in the same way
			t.crashes[e.id] = max(t.crashes[e.id], manyCrashes)
		}
	}
	n := t.crashes[e.id]
	t.m.log.Error("task actor crashed", "task", e.id, "crashes", n, "reason", m.reason)
	if !t.m.owned.OwnsTask(e.id) {
		t.dropMovedTask(e)
		return
	}
	t.countInMemory(e.id, 1) // a paused task counts as in memory
	t.forgetTask(e)
	if n > 2*manyCrashes {
		t.m.log.Error("task crashes repeatedly: it stays unloaded until the next request for it", "task", e.id)
	}
	p := &crashPause{}
	t.pauses[e.id] = p
	for _, message := range e.arrived {
		p.holdMessage(message)
	}
	t.m.work.After(background.BackOff(n), func() { t.m.sendMessage(t.m.tasks, reviveTask{e.id, p}) })
}

// dropMovedTask releases a task whose actor crashed during its move to another member. It does not
// retry, so that other moves need not wait.
func (t *tasks) dropMovedTask(e *taskEntry) {
	delete(t.crashes, e.id)
	delete(t.missingValues, e.id)
	for _, message := range e.arrived {
		t.redirectMessage(message)
	}
	t.forgetTask(e)
}

// crashPause holds the commands for a crashed task until the task may restart. Further requests do
// not shorten the pause.
type crashPause struct{ held []*taskCommand }

// maxHeld bounds how many requests wait for one crashed task. Reports are bounded by the number of
// jobs.
const maxHeld = 1000

// holdMessage keeps a message that can wait. It refuses a claim, because the poller would wait for
// a job that may crash again.
func (p *crashPause) holdMessage(message any) {
	cmd, ok := message.(*taskCommand)
	switch {
	case !ok: // the message was meant for the crashed actor
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

// reviveTask ends the pause after a crash. The held commands are delivered before the next actor
// asks for its jobs. A task that crashed too often is loaded only if commands are held.
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
		k := storedTask(t.m, id)
		k.waiting = waiting
		e := t.openTask(c, id, k)
		if !t.m.owned.OwnsTask(id) {
			t.askToRest(e, true)
		}
	}
}

// errCrashed is the answer to callers whose request was lost in the crash of an actor.
var errCrashed = flow.Errorf(flow.Busy, "the task's actor crashed while it was at this: it "+
	"starts again from the store, ask again in a moment")

// HandleFailure stops a step actor that panicked and starts another one after a pause. After
// manyCrashes the step fails, but never the task actor or the member.
func (t *task) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	t.effectPerformer.handleStepCrash(supervisor, child, reason)
}

// HandleFailure handles crashes of nested step actors in the same way as a task does.
func (s *step) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	s.effectPerformer.handleStepCrash(supervisor, child, reason)
}

// crashResetAfter is the time without crashes after which the next crash of a step actor counts as
// the first.
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
	h.m.log.Error("step actor crashed", "task", h.task, "step", k.at.String(), "crashes", k.crashes, "reason", reason)
	to, message := h.self, any(respawnStep{k.at})
	if k.crashes >= manyCrashes { // this actor may have stopped by then
		to, message = h.m.tasks, &taskCommand{task: h.task, command: failCrashingStep(k.at)}
	}
	h.m.work.After(background.BackOff(k.crashes), func() { h.m.sendMessage(to, message) })
}

// failCrashingStep returns the command that fails a step whose actor keeps crashing.
func failCrashingStep(at flow.Address) flow.FailStep {
	return flow.FailStep{Address: at, Error: "the step's actor keeps crashing"}
}
