package actors

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// sweepIdle retires, again and again, what has been idle for long enough.
func (t *tasks) sweepIdle(c actor.Context) {
	t.retireIdle(c)
	t.giveBackMemory()
	self := c.Self()
	t.m.cfg.Host.Clock.AfterFunc(max(t.m.cfg.IdleAfter/6, 10*time.Millisecond), func() { t.m.sendMessage(self, sweepTasks{}) })
}

// maxAsked is how many tasks are asked at once whether they may rest: what fills a batch or two.
// All that are idle would stand before the commits of those who work, and be so many that new work
// is refused.
const maxAsked = 2 * maxBatch

// manyAwake is from how many tasks in memory on they are asked to rest sooner.
const manyAwake = 10_000

// idleLimit is how long a task may be idle before it is asked to rest.
func (t *tasks) idleLimit() time.Duration {
	if len(t.entries) > manyAwake {
		return t.m.cfg.IdleAfter / 3
	}
	return t.m.cfg.IdleAfter
}

// retireIdle asks those to rest that have been idle for long enough.
func (t *tasks) retireIdle(_ actor.Context) {
	before := t.m.nowMillis() - t.idleLimit().Milliseconds()
	for el := t.byUse.Front(); el != nil && t.restAsked < maxAsked; {
		e := el.Value.(*taskEntry)
		if e.used > before {
			break
		}
		next := el.Next()
		t.askToRest(e, false)
		el = next
	}
}

// retireMore goes on when half of those who were asked have answered.
func (t *tasks) retireMore(c actor.Context) {
	if t.restAsked == maxAsked/2 && !t.resting {
		t.retireIdle(c)
	}
}

// noteRestAnswer notes that a task has answered, or never will.
func (t *tasks) noteRestAnswer(e *taskEntry) {
	if e.retiring {
		e.retiring = false
		t.restAsked--
		t.handOverMore()
	}
}

// manyRetired is from how many retired tasks on their memory is given back to the system, as soon
// as no more of them come. The runtime would do so too, but only minutes later.
const manyRetired = 5_000

func (t *tasks) giveBackMemory() {
	calm := t.retired == t.counted
	t.counted = t.retired
	if t.retired < manyRetired || !calm {
		return
	}
	t.retired, t.counted = 0, 0
	t.entries, t.byPID = shrinkMap(t.entries), shrinkMap(t.byPID)
	t.m.runBackground(debug.FreeOSMemory)
}

// shrinkMap is a map's content in a map of its size: a map keeps the size it once had.
func shrinkMap(m map[string]*taskEntry) map[string]*taskEntry {
	small := make(map[string]*taskEntry, len(m))
	maps.Copy(small, m)
	return small
}

// handleRestAnswer is a task's answer to restRequest. One that is busy gets what arrived meanwhile.
func (t *tasks) handleRestAnswer(c actor.Context, m restAnswer) {
	e := t.currentEntry(m.task)
	if e == nil || m.ok {
		return
	}
	t.noteRestAnswer(e)
	e.used = t.m.nowMillis()
	t.byUse.MoveToBack(e.element)
	for _, message := range e.arrived {
		c.Send(e.pid, message)
	}
	e.arrived = nil
	if t.resting || !t.m.owned.ownsTask(e.id) {
		t.askToRest(e, true)
	}
	t.retireMore(c)
}

// askToRest asks a task to let itself be retired, unless it has been asked before. One that is
// another member's by now is handed over.
func (t *tasks) askToRest(e *taskEntry, force bool) {
	if !e.retiring {
		e.retiring = true
		t.restAsked++
		t.m.sendMessage(e.pid, restRequest{force: force, move: force && !t.resting})
	}
}

func (t *tasks) finishRest(c actor.Context, m taskRested) {
	e := t.currentEntry(m.task)
	if e == nil {
		return
	}
	t.retired++
	t.m.rested.Add(1)
	delete(t.crashes, e.id)
	delete(t.missingValues, e.id)
	if m.moved {
		c.Poison(e.pid)
		return
	}
	t.closeTask(c, e)
	if t.resting {
		t.refuseMessages(e.arrived)
		return
	}
	t.redeliverArrived(c, e)
	t.retireMore(c)
}

// refuseMessages answers those whose task is no longer here, because the member goes. What is for a
// task of another member is brought there.
func (t *tasks) refuseMessages(messages []any) {
	for _, message := range messages {
		switch cmd, ok := message.(*taskCommand); {
		case !ok:
		case t.m.owned.ownsTask(cmd.task):
			cmd.sendAnswer(commandAnswer{err: errLeaving})
		default:
			t.redirectMessage(cmd)
		}
	}
}

var errLeaving = flow.Errorf(flow.Busy, "the member is shutting down: ask again when it is back")

// restAll puts every task to rest, because the member goes.
func (t *tasks) restAll(_ actor.Context, done func()) {
	t.resting = true
	for _, id := range slices.Sorted(maps.Keys(t.pauses)) {
		t.refuseMessages(t.pauses[id].heldMessages())
	}
	clear(t.pauses)
	if len(t.entries) == 0 {
		done()
		return
	}
	t.onAllRested = done
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		t.askToRest(el.Value.(*taskEntry), true)
	}
}
