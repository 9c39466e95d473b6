package actors

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/flow"
)

// sweepIdle periodically retires idle tasks.
func (t *tasks) sweepIdle(c actor.Context) {
	t.retireIdle(c)
	t.giveBackMemory()
	self := c.Self()
	t.m.work.After(max(t.m.cfg.IdleAfter/6, 10*time.Millisecond), func() { t.m.sendMessage(self, sweepTasks{}) })
}

// maxAsked is how many tasks are asked at once to retire, which fills one or two batches. A larger
// number would delay the commits of active tasks and make the member refuse new work.
const maxAsked = 2 * journal.MaxBatch

// manyAwake is the number of tasks in memory above which idle tasks retire sooner.
const manyAwake = 10_000

// idleLimit returns how long a task may be idle before it has to retire.
func (t *tasks) idleLimit() time.Duration {
	if len(t.entries) > manyAwake {
		return t.m.cfg.IdleAfter / 3
	}
	return t.m.cfg.IdleAfter
}

// retireIdle asks tasks that have been idle for long enough to rest.
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

// retireMore asks more tasks to rest when half of the asked ones have answered.
func (t *tasks) retireMore(c actor.Context) {
	if t.restAsked == maxAsked/2 && !t.resting {
		t.retireIdle(c)
	}
}

// noteRestAnswer records that a task has answered the request to rest, or is gone.
func (t *tasks) noteRestAnswer(e *taskEntry) {
	if e.retiring {
		e.retiring = false
		t.restAsked--
		t.handOverMore()
	}
}

// manyRetired is the number of retired tasks above which free memory is returned to the operating
// system after the wave. The Go runtime would do so only minutes later.
const manyRetired = 5_000

func (t *tasks) giveBackMemory() {
	calm := t.retired == t.counted
	t.counted = t.retired
	if t.retired < manyRetired || !calm {
		return
	}
	t.retired, t.counted = 0, 0
	t.entries, t.byPID = shrinkMap(t.entries), shrinkMap(t.byPID)
	t.m.work.Run(debug.FreeOSMemory)
}

// shrinkMap returns a copy of a map, because a Go map never shrinks.
func shrinkMap(m map[string]*taskEntry) map[string]*taskEntry {
	small := make(map[string]*taskEntry, len(m))
	maps.Copy(small, m)
	return small
}

// handleRestAnswer handles the refusal of a task to rest. The task gets the messages that arrived
// meanwhile.
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
	if t.resting || !t.m.owned.OwnsTask(e.id) {
		t.askToRest(e, true)
	}
	t.retireMore(c)
}

// askToRest asks a task to retire, unless it was asked before. A task that belongs to another
// member is handed over.
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
	t.m.counts.rested.Add(1)
	delete(t.crashes, e.id)
	delete(t.missingValues, e.id)
	c.Poison(e.pid) // the actor first forwards the messages in its mailbox
	if m.moved {
		return
	}
	t.forgetTask(e)
	if t.resting {
		t.refuseMessages(e.arrived)
		return
	}
	t.redeliverArrived(c, e)
	t.retireMore(c)
}

// refuseMessages answers the callers of tasks that are unavailable, because the member stops.
// Messages for tasks of other members are forwarded.
func (t *tasks) refuseMessages(messages []any) {
	for _, message := range messages {
		switch cmd, ok := message.(*taskCommand); {
		case !ok:
		case t.m.owned.OwnsTask(cmd.task):
			cmd.sendAnswer(commandAnswer{err: errLeaving})
		default:
			t.redirectMessage(cmd)
		}
	}
}

var errLeaving = flow.Errorf(flow.Busy, "the member is shutting down: ask again when it is back")

// restAll puts every task to rest because the member stops.
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
