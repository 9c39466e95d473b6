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

// handover is shards that are being handed over.
type handover struct {
	shards []int
	done   func()
}

// gain takes the tasks of shards. What has waited for one that was on its way out brings it back when it is at rest. Nobody waits any
// more for a handover of theirs.
func (t *tasks) gain(m gain) {
	now := t.m.now()
	for _, shard := range m.shards {
		t.m.owned.set(shard, now)
	}
	t.handovers = slices.DeleteFunc(t.handovers, func(h *handover) bool {
		return slices.ContainsFunc(h.shards, func(shard int) bool { return slices.Contains(m.shards, shard) })
	})
	t.m.recoverUnfinished(m.shards)
	t.m.externals.look()
}

// lose takes nothing more for the tasks of some shards, and puts to rest those in memory.
func (t *tasks) lose(c actor.Context, m lose) {
	for _, shard := range m.shards {
		t.m.owned.since[shard].Store(0)
	}
	for _, id := range slices.Sorted(maps.Keys(t.waiters)) {
		if !t.m.owned.owns(id) {
			for _, w := range t.waiters[id] {
				w.done("", errMoved(id))
			}
			delete(t.waiters, id)
		}
	}
	h := &handover{m.shards, m.done}
	t.handovers = append(t.handovers, h)
	t.watch(h, slowMove)
	for _, id := range slices.Sorted(maps.Keys(t.pauses)) {
		if !t.m.owned.owns(id) {
			t.revive(c, id) // its pause would hold up all the others
		}
	}
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		if e := el.Value.(*entry); !t.m.owned.owns(e.id) {
			t.movers = append(t.movers, e)
		}
	}
	t.moveMore()
	t.handedOver()
}

// moveMore asks tasks of other members to rest. No more are asked at once than of those that are idle: the commits of all would stand
// before those of who works on, and be so many that new work is refused.
func (t *tasks) moveMore() {
	if t.asked > maxAsked/2 {
		return
	}
	for len(t.movers) > 0 && t.asked < maxAsked {
		e := t.movers[0]
		t.movers[0], t.movers = nil, t.movers[1:]
		if t.entries[e.id] == e && !t.m.owned.owns(e.id) {
			t.rest(e, true)
		}
	}
}

// count keeps how many tasks of a shard are in memory, or will be after the pause since a crash.
func (t *tasks) count(task string, by int) {
	if t.m.owned.fixed {
		return
	}
	shard := persistence.ShardOf(task)
	t.inMemory[shard] += by
	if t.inMemory[shard] == 0 && len(t.handovers) > 0 {
		t.handedOver()
	}
}

// handedOver ends the handovers of which nothing is in memory any more.
func (t *tasks) handedOver() {
	t.handovers = slices.DeleteFunc(t.handovers, func(h *handover) bool {
		if slices.ContainsFunc(h.shards, func(shard int) bool { return t.inMemory[shard] > 0 }) {
			return false
		}
		h.done()
		return true
	})
}

// slowMove is after how long it is told which tasks hold up a handover, and after twice as long again, and so on.
const slowMove = 5 * time.Second

// heldUp says that a handover has taken a while.
type heldUp struct {
	handover *handover
	took     time.Duration
}

func (t *tasks) watch(h *handover, took time.Duration) {
	t.m.cfg.Host.Clock.AfterFunc(took, func() { t.m.tell(t.m.tasks, heldUp{h, took}) })
}

// maxNamed is how many tasks are named that hold up a handover.
const maxNamed = 10

// heldUp tells which tasks a handover waits for.
func (t *tasks) heldUp(m heldUp) {
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
	t.watch(m.handover, 2*m.took)
}

// elsewhere is for what has come for a task of another member: who waits is told, and what jobs have reported, or a
// poller gives back, is brought there. Whatever else the new owner does by itself.
func (t *tasks) elsewhere(message any) {
	cmd, ok := message.(*command)
	switch {
	case !ok:
	case cmd.reply != nil:
		cmd.answer(answer{err: errMoved(cmd.task)})
	case cmd.landed() || isGiveBack(cmd):
		t.m.orderForwarder.send(cmd.task, cmd.cmd)
	}
}

// unheard is a job that this member is said to carry for another one's task, and does not know.
type unheard struct {
	job   jobKey
	given int
}

// unheard gives a job back. What it may have reported before it was forgotten has come here by now.
func (t *tasks) unheard(m unheard) {
	task := m.job.task
	if !t.m.owned.owns(task) && t.entries[task] == nil && !t.m.orderForwarder.has(m.job, m.given) {
		t.m.orderForwarder.send(task, giveBack(m.job.at, m.given))
	}
}

func isGiveBack(cmd *command) bool {
	_, ok := cmd.cmd.(flow.GiveBack)
	return ok
}

// asks says whether somebody waits for the answer to a message.
func asks(message any) bool {
	cmd, ok := message.(*command)
	return ok && cmd.reply != nil
}

// departed forgets a task that has been handed over, when its actor has passed on all it had. One that was given back
// meanwhile is taken up again.
func (t *tasks) departed(c actor.Context, k *task) {
	e := t.current(k)
	if e == nil {
		return
	}
	if !t.m.owned.owns(e.id) {
		for _, message := range e.arrived {
			t.elsewhere(message)
		}
		t.forget(e)
	} else {
		t.forget(e)
		t.wake(c, wakeUp{tasks: []string{e.id}})
		t.reopen(c, e)
	}
	t.retireMore(c)
}

// orphaned has every task in memory take over what a member carried that is gone.
func (t *tasks) orphaned(c actor.Context) {
	recovering := t.m.recovering("")
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		e := el.Value.(*entry)
		recovering.Since = t.m.owned.sinceOf(e.id)
		cmd := &command{task: e.id, cmd: recovering}
		if e.retiring {
			e.arrived = append(e.arrived, cmd)
			continue
		}
		c.Send(e.pid, cmd)
	}
}

// flushing passes through the actors of a task's steps, behind everything that they were handed before.
type flushing struct {
	at   int64
	left atomic.Int64 // actors that it has not passed
	away atomic.Bool  // one has crashed: what it was to dispatch only the task knows
	done func()

	mu      sync.Mutex
	failing []flow.Address // steps whose actors keep crashing
}

// missed notes that it did not come to a step's actor, which has crashed. One that is to come back does so by itself.
func (f *flushing) missed(k *child) {
	f.away.Store(true)
	if k.crashes >= manyCrashes {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failing = append(f.failing, k.at)
	}
}

// passDown has the actors of the steps inside flush.
func (h *performer) passDown(c actor.Context, f *flushing) {
	for _, at := range h.stepsAt() {
		k := h.children[at]
		if k.pid == nil {
			f.missed(k)
			continue
		}
		f.left.Add(1)
		c.Send(k.pid, f)
	}
	if f.left.Add(-1) == 0 {
		f.done()
	}
}

// flushed says that the step actors of a task have dispatched all they were handed.
type flushed struct{ *flushing }

// flushAgain is how long, in milliseconds, the step actors of a task may take; one that has crashed since never answers.
const flushAgain = 1000

// handOver puts the task to rest because another member is to have it. From now on what comes waits with the parent; what
// has been decided is stored, what is to be dispatched is dispatched, and jobs under way go on.
func (t *task) handOver(c actor.Context, later bool) {
	if t.resting > leaving || later && t.resting == awake {
		return // it is on its way, or nobody wants that any more
	}
	t.resting = leaving
	t.leaveCut()
	switch {
	case t.loading && t.tries > 0 && t.unread == nil:
		t.leaveUnloaded(c)
	case !t.idleNow() || len(t.waiting)+len(t.alone) > 0:
		t.restLater(c, true)
	case t.state.Status.Ended():
		t.resting = gone
		c.Send(t.m.tasks, rested{task: t})
	case len(t.children) == 0:
		t.commitRest(c)
	default:
		t.restLater(c, true)
		t.flushSteps(c)
	}
}

// leaveUnloaded lets another member have a task that the store did not give to this one. Nothing was decided here.
func (t *task) leaveUnloaded(c actor.Context) {
	t.gen++ // what the store says by now is for nobody
	waiting := t.waiting
	t.waiting = nil
	for _, cmd := range waiting {
		c.Send(t.m.tasks, cmd)
	}
	t.inbox.moveAway() // jobs from before the store failed go on
	t.resting, t.moved = gone, true
	c.Send(t.m.tasks, rested{t, true})
}

// flushSteps has the task rest when its step actors have dispatched all they were handed.
func (t *task) flushSteps(c actor.Context) {
	now := t.m.now()
	if t.flushing != nil && now-t.flushing.at < flushAgain {
		return
	}
	m, self := t.m, c.Self()
	f := &flushing{at: now}
	f.done = func() { m.tell(self, flushed{f}) }
	f.left.Store(1)
	t.flushing = f
	t.passDown(c, f)
}

func (t *task) flushed(c actor.Context, m flushed) {
	switch {
	case m.flushing != t.flushing || t.resting != leaving:
	case !t.idleNow():
		t.flushing = nil // restLater asks again
	case m.away.Load():
		t.flushing = nil
		for _, at := range m.failing { // the word that says so waits with the parent
			t.decide(c, &command{cmd: keepsCrashing(at)})
		}
	default:
		t.commitRest(c)
	}
}
