package actors

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shardHandover is a set of shards that this member is handing over.
type shardHandover struct {
	shards []int
	done   func()
}

// gainShards makes this member the owner of shards. It drops pending handovers of these shards. A
// departing task that has waiting commands is loaded again when it has come to rest.
func (t *tasks) gainShards(m shardsGained) {
	now := t.m.nowMillis()
	for _, shard := range m.shards {
		t.m.owned.AddShard(shard, now)
	}
	t.handovers = slices.DeleteFunc(t.handovers, func(h *shardHandover) bool {
		return slices.ContainsFunc(h.shards, func(shard int) bool { return slices.Contains(m.shards, shard) })
	})
	t.m.waker.RecoverUnfinished(m.shards)
	t.m.externals.TriggerRead()
}

// loseShards refuses further commands for the tasks of some shards, and puts those in memory to
// rest.
func (t *tasks) loseShards(c actor.Context, m loseShards) {
	for _, shard := range m.shards {
		t.m.owned.DropShard(shard)
	}
	for _, id := range slices.Sorted(maps.Keys(t.waiters)) {
		if !t.m.owned.OwnsTask(id) {
			for _, w := range t.waiters[id] {
				w.done("", errMoved(id))
			}
			delete(t.waiters, id)
		}
	}
	h := &shardHandover{m.shards, m.done}
	t.handovers = append(t.handovers, h)
	t.watchHandover(h, handoverWarnAfter)
	for _, id := range slices.Sorted(maps.Keys(t.pauses)) {
		if !t.m.owned.OwnsTask(id) {
			t.reviveTask(c, id) // the pause of a crashed task would delay the other handovers
		}
	}
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		if e := el.Value.(*taskEntry); !t.m.owned.OwnsTask(e.id) {
			t.tasksToMove = append(t.tasksToMove, e)
		}
	}
	t.handOverMore()
	t.finishHandovers()
}

// handOverMore asks tasks of other members to rest, up to a limit of unanswered requests. Without
// the limit, their commits would delay active tasks, and the member would refuse new work.
func (t *tasks) handOverMore() {
	if t.restAsked > maxAsked/2 {
		return
	}
	for len(t.tasksToMove) > 0 && t.restAsked < maxAsked {
		e := t.tasksToMove[0]
		t.tasksToMove[0], t.tasksToMove = nil, t.tasksToMove[1:]
		if t.entries[e.id] == e && !t.m.owned.OwnsTask(e.id) {
			t.askToRest(e, true)
		}
	}
}

// countInMemory changes the number of a shard's tasks that are in memory or in a pause after a
// crash.
func (t *tasks) countInMemory(task string, by int) {
	if t.m.owned.OwnsAll() {
		return
	}
	shard := persistence.ShardOf(task)
	t.inMemory[shard] += by
	if t.inMemory[shard] == 0 && len(t.handovers) > 0 {
		t.finishHandovers()
	}
}

// finishHandovers ends the handovers whose tasks have all left memory.
func (t *tasks) finishHandovers() {
	t.handovers = slices.DeleteFunc(t.handovers, func(h *shardHandover) bool {
		if slices.ContainsFunc(h.shards, func(shard int) bool { return t.inMemory[shard] > 0 }) {
			return false
		}
		h.done()
		return true
	})
}

// handoverWarnAfter is the time after which the log names the tasks that delay a handover. The time
// doubles after each log line.
const handoverWarnAfter = 5 * time.Second

// handoverDelayed reports that a handover has not ended yet.
type handoverDelayed struct {
	handover *shardHandover
	took     time.Duration
}

func (t *tasks) watchHandover(h *shardHandover, took time.Duration) {
	t.m.work.After(took, func() { t.m.sendMessage(t.m.tasks, handoverDelayed{h, took}) })
}

// maxNamed is how many tasks that delay a handover the log names.
const maxNamed = 10

// logDelayedHandover logs the tasks that a handover waits for.
func (t *tasks) logDelayedHandover(m handoverDelayed) {
	if !slices.Contains(t.handovers, m.handover) {
		return
	}
	shards, held := persistence.ShardSet(m.handover.shards), []string{}
	for id := range t.entries {
		if shards.Has(id) {
			held = append(held, id)
		}
	}
	slices.Sort(held)
	t.m.log.Warn("handover of shards is waiting for running commits of their tasks",
		"shards", len(m.handover.shards), "waiting", m.took, "tasks", len(held), "first", held[:min(len(held), maxNamed)])
	t.watchHandover(m.handover, 2*m.took)
}

// redirectMessage handles a message for a task of another member. Waiting callers get the error
// Moved. Reports of jobs and returned claims are forwarded. All other messages are dropped, because
// the new owner repeats them.
func (t *tasks) redirectMessage(message any) {
	cmd, ok := message.(*taskCommand)
	switch {
	case !ok:
	case cmd.reply != nil:
		cmd.sendAnswer(commandAnswer{err: errMoved(cmd.task)})
	case cmd.isJobReport() || isGiveBack(cmd):
		t.m.orderForwarder.SendCommand(cmd.task, cmd.command)
	}
}

// unknownJob is a job that this member should carry out for another member's task, but does not
// know.
type unknownJob struct {
	job      engine.JobKey
	given    int
	function bool // the job is a function flow
}

// returnUnknownJob gives a job back to the owner of its task, unless this member reported the job
// recently. All earlier reports of the job have arrived by now.
func (t *tasks) returnUnknownJob(m unknownJob) {
	task := m.job.Task
	if !t.m.owned.OwnsTask(task) && t.entries[task] == nil && !t.m.orderForwarder.HasReported(m.job, m.given, m.function) {
		t.m.orderForwarder.SendCommand(task, giveBack(m.job.At, m.given))
	}
}

func isGiveBack(cmd *taskCommand) bool {
	_, ok := cmd.command.(flow.GiveBack)
	return ok
}

// awaitsReply reports whether a caller waits for the answer to a message.
func awaitsReply(message any) bool {
	cmd, ok := message.(*taskCommand)
	return ok && cmd.reply != nil
}

// finishMove forgets a task that was handed over. If this member owns the task again, the task is
// loaded again.
func (t *tasks) finishMove(c actor.Context, k *task) {
	e := t.currentEntry(k)
	if e == nil {
		return
	}
	if !t.m.owned.OwnsTask(e.id) {
		for _, message := range e.arrived {
			t.redirectMessage(message)
		}
		t.forgetTask(e)
	} else {
		t.forgetTask(e)
		t.wakeTasks(c, wakeTasks{tasks: []string{e.id}})
		t.redeliverArrived(c, e)
	}
	t.retireMore(c)
}

// recoverOrphans makes every task in memory recover the jobs of members that are gone.
func (t *tasks) recoverOrphans(c actor.Context) {
	recovering := t.m.peers.recoverCommand("")
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		e := el.Value.(*taskEntry)
		recovering.Since = t.m.owned.SinceOf(e.id)
		cmd := &taskCommand{task: e.id, command: recovering}
		if e.retiring {
			e.arrived = append(e.arrived, cmd)
			continue
		}
		c.Send(e.pid, cmd)
	}
}

// stepFlush is a marker that passes through the actors of a task's steps, behind all effects that
// were sent before. It shows when the actors have handled these effects.
type stepFlush struct {
	at        int64
	remaining atomic.Int64 // actors that the marker has not passed yet
	// a step's actor has crashed, so its pending dispatches are only known to the task
	stepMissed atomic.Bool
	done       func()

	mu            sync.Mutex
	crashingSteps []flow.Address // steps whose actors keep crashing
}

// noteMissedStep records that the flush did not reach the crashed actor of a step. An actor that
// will be restarted needs no other treatment.
func (f *stepFlush) noteMissedStep(k *stepChild) {
	f.stepMissed.Store(true)
	if k.crashes >= manyCrashes {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.crashingSteps = append(f.crashingSteps, k.at)
	}
}

// flushChildren sends the flush to the actors of nested steps.
func (h *effectPerformer) flushChildren(c actor.Context, f *stepFlush) {
	for _, at := range h.stepsAt() {
		k := h.children[at]
		if k.pid == nil {
			f.noteMissedStep(k)
			continue
		}
		f.remaining.Add(1)
		c.Send(k.pid, f)
	}
	if f.remaining.Add(-1) == 0 {
		f.done()
	}
}

// stepsFlushed reports that a task's step actors have dispatched everything they received.
type stepsFlushed struct{ *stepFlush }

// flushTimeout is how long, in milliseconds, the step actors of a task may take. A crashed actor
// does not answer, so the flush is repeated afterwards.
const flushTimeout = 1000

// handOver puts the task to rest because another member will own it. New commands wait at the
// parent actor. Pending decisions are stored, their dispatches are sent, and active jobs continue.
func (t taskResting) handOver(c actor.Context, later bool) {
	if t.resting > restLeaving || later && t.resting == restNone {
		return // the task rests already, or the request is outdated
	}
	t.resting = restLeaving
	t.turnPart().dropCut()
	switch {
	case t.loading && t.tries > 0 && t.unreadable == nil:
		t.leaveUnloaded(c)
	case !t.idleNow() || len(t.waiting)+len(t.isolated) > 0:
		t.restLater(c, true)
	case t.state.Status.Ended():
		t.finishWork()
		c.Send(t.m.tasks, taskRested{task: t.task})
	case len(t.children) == 0:
		t.commitRest(c)
	default:
		t.restLater(c, true)
		t.flushSteps(c)
	}
}

// leaveUnloaded releases a task that this member could not load to another member. This member made
// no decisions about the task.
func (t taskResting) leaveUnloaded(c actor.Context) {
	t.gen++ // makes later answers of the store outdated
	waiting := t.waiting
	t.waiting = nil
	for _, cmd := range waiting {
		c.Send(t.m.tasks, cmd)
	}
	t.inbox.detachOwner() // jobs from before the failure of the store continue
	t.resting, t.movesAway = restDone, true
	c.Send(t.m.tasks, taskRested{t.task, true})
}

// flushSteps puts the task to rest when its step actors have dispatched everything they received.
func (t taskResting) flushSteps(c actor.Context) {
	now := t.m.nowMillis()
	if t.flushing != nil && now-t.flushing.at < flushTimeout {
		return
	}
	m, self := t.m, c.Self()
	f := &stepFlush{at: now}
	f.done = func() { m.sendMessage(self, stepsFlushed{f}) }
	f.remaining.Store(1)
	t.flushing = f
	t.flushChildren(c, f)
}

func (t taskResting) finishFlush(c actor.Context, m stepsFlushed) {
	switch {
	case m.stepFlush != t.flushing || t.resting != restLeaving:
	case !t.idleNow():
		t.flushing = nil // restLater retries
	case m.stepMissed.Load():
		t.flushing = nil
		// the command that fails the step waits at the parent actor
		for _, at := range m.crashingSteps {
			t.decideCommand(c, &taskCommand{command: failCrashingStep(at)})
		}
	default:
		t.commitRest(c)
	}
}
