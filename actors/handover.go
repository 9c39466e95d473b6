package actors

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shardHandover is shards that are being handed over.
type shardHandover struct {
	shards []int
	done   func()
}

// gainShards takes the tasks of shards. What has waited for one that was on its way out brings it
// back when it is at rest. Nobody waits any more for a handover of theirs.
func (t *tasks) gainShards(m shardsGained) {
	now := t.m.nowMillis()
	for _, shard := range m.shards {
		t.m.owned.addShard(shard, now)
	}
	t.handovers = slices.DeleteFunc(t.handovers, func(h *shardHandover) bool {
		return slices.ContainsFunc(h.shards, func(shard int) bool { return slices.Contains(m.shards, shard) })
	})
	t.m.recoverUnfinished(m.shards)
	t.m.externals.triggerRead()
}

// loseShards takes nothing more for the tasks of some shards, and puts to rest those in memory.
func (t *tasks) loseShards(c actor.Context, m loseShards) {
	for _, shard := range m.shards {
		t.m.owned.since[shard].Store(0)
	}
	for _, id := range slices.Sorted(maps.Keys(t.waiters)) {
		if !t.m.owned.ownsTask(id) {
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
		if !t.m.owned.ownsTask(id) {
			t.reviveTask(c, id) // its pause would hold up all the others
		}
	}
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		if e := el.Value.(*taskEntry); !t.m.owned.ownsTask(e.id) {
			t.tasksToMove = append(t.tasksToMove, e)
		}
	}
	t.handOverMore()
	t.finishHandovers()
}

// handOverMore asks tasks of other members to rest. No more are asked at once than of those that
// are idle: the commits of all would stand before those of who works on, and be so many that new
// work is refused.
func (t *tasks) handOverMore() {
	if t.restAsked > maxAsked/2 {
		return
	}
	for len(t.tasksToMove) > 0 && t.restAsked < maxAsked {
		e := t.tasksToMove[0]
		t.tasksToMove[0], t.tasksToMove = nil, t.tasksToMove[1:]
		if t.entries[e.id] == e && !t.m.owned.ownsTask(e.id) {
			t.askToRest(e, true)
		}
	}
}

// countInMemory keeps how many tasks of a shard are in memory, or will be after the pause since a
// crash.
func (t *tasks) countInMemory(task string, by int) {
	if t.m.owned.ownsAll {
		return
	}
	shard := persistence.ShardOf(task)
	t.inMemory[shard] += by
	if t.inMemory[shard] == 0 && len(t.handovers) > 0 {
		t.finishHandovers()
	}
}

// finishHandovers ends the handovers of which nothing is in memory any more.
func (t *tasks) finishHandovers() {
	t.handovers = slices.DeleteFunc(t.handovers, func(h *shardHandover) bool {
		if slices.ContainsFunc(h.shards, func(shard int) bool { return t.inMemory[shard] > 0 }) {
			return false
		}
		h.done()
		return true
	})
}

// handoverWarnAfter is after how long it is told which tasks hold up a handover, and after twice as
// long again, and so on.
const handoverWarnAfter = 5 * time.Second

// handoverDelayed says that a handover has taken a while.
type handoverDelayed struct {
	handover *shardHandover
	took     time.Duration
}

func (t *tasks) watchHandover(h *shardHandover, took time.Duration) {
	t.m.cfg.Host.Clock.AfterFunc(took, func() { t.m.sendMessage(t.m.tasks, handoverDelayed{h, took}) })
}

// maxNamed is how many tasks are named that hold up a handover.
const maxNamed = 10

// logDelayedHandover tells which tasks a handover waits for.
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
	t.m.log.Warn("shards could not be handed over yet: tasks of theirs have not come to rest",
		"shards", len(m.handover.shards), "waiting", m.took, "tasks", len(held), "first", held[:min(len(held), maxNamed)])
	t.watchHandover(m.handover, 2*m.took)
}

// redirectMessage is for what has come for a task of another member: who waits is told, and what
// jobs have reported, or a poller gives back, is brought there. Whatever else the new owner does by
// itself.
func (t *tasks) redirectMessage(message any) {
	cmd, ok := message.(*taskCommand)
	switch {
	case !ok:
	case cmd.reply != nil:
		cmd.sendAnswer(commandAnswer{err: errMoved(cmd.task)})
	case cmd.isJobReport() || isGiveBack(cmd):
		t.m.orderForwarder.sendCommand(cmd.task, cmd.command)
	}
}

// unknownJob is a job that this member is said to carry for another one's task, and does not know.
type unknownJob struct {
	job   jobKey
	given int
}

// returnUnknownJob gives a job back. What it may have reported before it was forgotten has come
// here by now.
func (t *tasks) returnUnknownJob(m unknownJob) {
	task := m.job.task
	if !t.m.owned.ownsTask(task) && t.entries[task] == nil && !t.m.orderForwarder.hasReported(m.job, m.given) {
		t.m.orderForwarder.sendCommand(task, giveBack(m.job.at, m.given))
	}
}

func isGiveBack(cmd *taskCommand) bool {
	_, ok := cmd.command.(flow.GiveBack)
	return ok
}

// awaitsReply reports whether somebody waits for the answer to a message.
func awaitsReply(message any) bool {
	cmd, ok := message.(*taskCommand)
	return ok && cmd.reply != nil
}

// finishMove forgets a task that has been handed over, when its actor has passed on all it had. One
// that was given back meanwhile is taken up again.
func (t *tasks) finishMove(c actor.Context, k *task) {
	e := t.currentEntry(k)
	if e == nil {
		return
	}
	if !t.m.owned.ownsTask(e.id) {
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

// recoverOrphans has every task in memory take over what a member carried that is gone.
func (t *tasks) recoverOrphans(c actor.Context) {
	recovering := t.m.recoverCommand("")
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		e := el.Value.(*taskEntry)
		recovering.Since = t.m.owned.sinceOf(e.id)
		cmd := &taskCommand{task: e.id, command: recovering}
		if e.retiring {
			e.arrived = append(e.arrived, cmd)
			continue
		}
		c.Send(e.pid, cmd)
	}
}

// stepFlush passes through the actors of a task's steps, behind everything that they were handed
// before.
type stepFlush struct {
	at         int64
	remaining  atomic.Int64 // actors that it has not passed
	stepMissed atomic.Bool  // one has crashed: what it was to dispatch only the task knows
	done       func()

	mu            sync.Mutex
	crashingSteps []flow.Address // steps whose actors keep crashing
}

// noteMissedStep notes that it did not come to a step's actor, which has crashed. One that is to
// come back does so by itself.
func (f *stepFlush) noteMissedStep(k *stepChild) {
	f.stepMissed.Store(true)
	if k.crashes >= manyCrashes {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.crashingSteps = append(f.crashingSteps, k.at)
	}
}

// flushChildren has the actors of the steps inside flush.
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

// stepsFlushed says that the step actors of a task have dispatched all they were handed.
type stepsFlushed struct{ *stepFlush }

// flushTimeout is how long, in milliseconds, the step actors of a task may take; one that has
// crashed since never answers.
const flushTimeout = 1000

// handOver puts the task to rest because another member is to have it. From now on what comes waits
// with the parent; what has been decided is stored, what is to be dispatched is dispatched, and
// jobs under way go on.
func (t *task) handOver(c actor.Context, later bool) {
	if t.resting > restLeaving || later && t.resting == restNone {
		return // it is on its way, or nobody wants that any more
	}
	t.resting = restLeaving
	t.dropCut()
	switch {
	case t.loading && t.tries > 0 && t.unreadable == nil:
		t.leaveUnloaded(c)
	case !t.idleNow() || len(t.waiting)+len(t.isolated) > 0:
		t.restLater(c, true)
	case t.state.Status.Ended():
		t.resting = restDone
		c.Send(t.m.tasks, taskRested{task: t})
	case len(t.children) == 0:
		t.commitRest(c)
	default:
		t.restLater(c, true)
		t.flushSteps(c)
	}
}

// leaveUnloaded lets another member have a task that the store did not give to this one. Nothing
// was decided here.
func (t *task) leaveUnloaded(c actor.Context) {
	t.gen++ // what the store says by now is for nobody
	waiting := t.waiting
	t.waiting = nil
	for _, cmd := range waiting {
		c.Send(t.m.tasks, cmd)
	}
	t.inbox.detachOwner() // jobs from before the store failed go on
	t.resting, t.movesAway = restDone, true
	c.Send(t.m.tasks, taskRested{t, true})
}

// flushSteps has the task rest when its step actors have dispatched all they were handed.
func (t *task) flushSteps(c actor.Context) {
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

func (t *task) finishFlush(c actor.Context, m stepsFlushed) {
	switch {
	case m.stepFlush != t.flushing || t.resting != restLeaving:
	case !t.idleNow():
		t.flushing = nil // restLater asks again
	case m.stepMissed.Load():
		t.flushing = nil
		for _, at := range m.crashingSteps { // the word that says so waits with the parent
			t.decideCommand(c, &taskCommand{command: failCrashingStep(at)})
		}
	default:
		t.commitRest(c)
	}
}
