package actors

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// sweep retires, again and again, what has been idle for long enough.
func (t *tasks) sweep(c actor.Context) {
	t.retire(c)
	t.giveBackMemory()
	self := c.Self()
	t.m.cfg.Host.Clock.AfterFunc(max(t.m.cfg.IdleAfter/6, 10*time.Millisecond), func() { t.m.tell(self, sweep{}) })
}

// maxAsked is how many tasks are asked at once whether they may rest: what fills a batch or two. All that
// are idle would stand before the commits of those who work, and be so many that new work is refused.
const maxAsked = 2 * maxBatch

// manyAwake is from how many tasks in memory on they are asked to rest sooner.
const manyAwake = 10_000

// patience is how long a task may be idle before it is asked to rest.
func (t *tasks) patience() time.Duration {
	if len(t.entries) > manyAwake {
		return t.m.cfg.IdleAfter / 3
	}
	return t.m.cfg.IdleAfter
}

// retire asks those to rest that have been idle for long enough.
func (t *tasks) retire(_ actor.Context) {
	before := t.m.now() - t.patience().Milliseconds()
	for el := t.byUse.Front(); el != nil && t.asked < maxAsked; {
		e := el.Value.(*entry)
		if e.used > before {
			break
		}
		next := el.Next()
		t.rest(e, false)
		el = next
	}
}

// retireMore goes on when half of those who were asked have answered.
func (t *tasks) retireMore(c actor.Context) {
	if t.asked == maxAsked/2 && !t.resting {
		t.retire(c)
	}
}

// heard notes that a task has answered, or never will.
func (t *tasks) heard(e *entry) {
	if e.retiring {
		e.retiring = false
		t.asked--
		t.moveMore()
	}
}

// manyRetired is from how many retired tasks on their memory is given back to the system, as soon as
// no more of them come. The runtime would do so too, but only minutes later.
const manyRetired = 5_000

func (t *tasks) giveBackMemory() {
	calm := t.retired == t.counted
	t.counted = t.retired
	if t.retired < manyRetired || !calm {
		return
	}
	t.retired, t.counted = 0, 0
	t.entries, t.byPID = shrunk(t.entries), shrunk(t.byPID)
	t.m.background(debug.FreeOSMemory)
}

// shrunk is a map's content in a map of its size: a map keeps the size it once had.
func shrunk(m map[string]*entry) map[string]*entry {
	small := make(map[string]*entry, len(m))
	maps.Copy(small, m)
	return small
}

// restable is a task's answer to restRequest. One that is busy gets what arrived meanwhile.
func (t *tasks) restable(c actor.Context, m restable) {
	e := t.current(m.task)
	if e == nil || m.ok {
		return
	}
	t.heard(e)
	e.used = t.m.now()
	t.byUse.MoveToBack(e.place)
	for _, message := range e.arrived {
		c.Send(e.pid, message)
	}
	e.arrived = nil
	if t.resting || !t.m.owned.owns(e.id) {
		t.rest(e, true)
	}
	t.retireMore(c)
}

// rest asks a task to let itself be retired, unless it has been asked before. One that is another member's by now is
// handed over.
func (t *tasks) rest(e *entry, force bool) {
	if !e.retiring {
		e.retiring = true
		t.asked++
		t.m.tell(e.pid, restRequest{force: force, move: force && !t.resting})
	}
}

func (t *tasks) rested(c actor.Context, m rested) {
	e := t.current(m.task)
	if e == nil {
		return
	}
	t.retired++
	t.m.rested.Add(1)
	delete(t.crashes, e.id)
	delete(t.lacks, e.id)
	if m.moved {
		c.Poison(e.pid)
		return
	}
	t.close(c, e)
	if t.resting {
		t.refuse(e.arrived)
		return
	}
	t.reopen(c, e)
	t.retireMore(c)
}

// refuse answers those whose task is no longer here, because the member goes. What is for a task of another member is brought there.
func (t *tasks) refuse(messages []any) {
	for _, message := range messages {
		switch cmd, ok := message.(*command); {
		case !ok:
		case t.m.owned.owns(cmd.task):
			cmd.answer(answer{err: errLeaving})
		default:
			t.elsewhere(cmd)
		}
	}
}

var errLeaving = flow.Errorf(flow.Busy, "the member is shutting down: ask again when it is back")

// restAll puts every task to rest, because the member goes.
func (t *tasks) restAll(_ actor.Context, done func()) {
	t.resting = true
	for _, id := range slices.Sorted(maps.Keys(t.pauses)) {
		t.refuse(t.pauses[id].messages())
	}
	clear(t.pauses)
	if len(t.entries) == 0 {
		done()
		return
	}
	t.leaving = done
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		t.rest(el.Value.(*entry), true)
	}
}
