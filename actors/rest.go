package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// restPhase says how far a task's retirement is.
type restPhase uint8

const (
	awake   restPhase = iota
	leaving           // for another member, as soon as nothing is on its way
	restCommitting
	gone
)

// restRequest asks a task whether it may be retired.
type restRequest struct {
	force bool // the member goes
	move  bool // or another member is to have the task
	again bool // what had landed by then was told before
	later bool // the task asks itself, because it was busy
}

// restAgain is how long it is until a task that was busy looks again whether it can go to rest.
const restAgain = 10 * time.Millisecond

// rest retires the task if it has nothing to do but wait. Forced, because the member goes, it rests as
// soon as nothing is on its way to the store.
func (t *task) rest(c actor.Context, m restRequest) {
	force := m.force
	switch {
	case t.unread != nil && len(t.unread.cancels) == 0:
		t.resting = gone
		c.Send(t.m.tasks, rested{task: t})
		return
	case m.move:
		t.handOver(c, m.later)
		return
	case force && !m.again:
		t.decideLanded(c)
		c.Send(c.Self(), restRequest{force: true, again: true})
		return
	case force:
		t.returnBegun(c)
	}
	_, quiet := t.quiet()
	switch {
	case force && !t.idleNow():
		t.restLater(c, false)
		return
	case !quiet && !force:
		c.Send(t.m.tasks, restable{t, false})
		return
	case t.state.Status.Ended():
		t.resting = gone
		c.Send(t.m.tasks, rested{task: t})
		return
	}
	t.commitRest(c)
}

// restLater has a task that must rest look again whether it can.
func (t *task) restLater(c actor.Context, move bool) {
	self := c.Self()
	t.m.cfg.Host.Clock.AfterFunc(restAgain, func() { t.m.tell(self, restRequest{force: true, move: move, later: true}) })
}

// commitRest writes down that the task is at rest, or that nobody has it, unless the last row has said so. Who has loaded a task that is at rest writes
// it again: it may have been due at once, and the store says whether the state is the newest.
func (t *task) commitRest(c actor.Context) {
	due, quiet := t.quiet()
	t.moved, t.resting = t.resting == leaving, restCommitting
	if t.parked && quiet {
		t.restWritten(c, nil)
		return
	}
	commit := persistence.Commit{Task: t.id, Seq: t.seq, At: t.m.now(), Rest: &persistence.Rest{Resting: quiet, Due: due}}
	if t.restsWithSnapshot() {
		t.takeSnapshot(&commit)
	}
	if col := persistence.ColumnsOf(t.state); col != t.columns {
		commit.Columns = &col
	}
	t.send(c, commit)
}

// returnBegun lets go of what is not finished before the member goes.
func (t *task) returnBegun(c actor.Context) {
	t.leaveCut()
	if t.idleNow() {
		t.decide(c, &command{cmd: t.m.leaving(t.id)})
	}
}

// decideLanded decides what all jobs of the task have reported: nobody is to do that work again. What a step's actor
// has taken before is in the task's mailbox.
func (t *task) decideLanded(c actor.Context) {
	var cmds []*command
	t.inbox.drain(func(landed []*flight) { cmds = append(cmds, reportsOf(t.id, landed)) }, false)
	t.each(cmds, func(cmd *command) {
		if !t.hold(cmd) {
			t.decide(c, cmd)
		}
	})
}

// idleNow says whether nothing is on its way to the store.
func (t *task) idleNow() bool {
	return !t.loading && t.inflight == nil && t.open == nil && len(t.more) == 0
}

// quiet says whether all a task has to do is wait, and when it is due (0 = only a message brings it back).
func (t *task) quiet() (due int64, ok bool) {
	if !t.idleNow() {
		return 0, false
	}
	if t.state.Status.Ended() {
		return 0, true
	}
	if t.unfinished {
		return 0, false
	}
	if due, ok = flow.Idle(t.state); !ok || !t.long(due) {
		return 0, false
	}
	return due, true
}

// long says whether it is worth while to leave memory until a time (0 = until somebody comes).
func (t *task) long(due int64) bool {
	return due == 0 || due >= t.m.now()+3*t.m.cfg.IdleAfter.Milliseconds()
}

func (t *task) restWritten(c actor.Context, err error) {
	if err != nil {
		t.resting, t.moved, t.flushing = awake, false, nil
		t.inflight = &draft{}
		t.forget(c, err)
		c.Send(t.m.tasks, restable{t, false})
		return
	}
	t.resting = gone
	if t.moved {
		t.inbox.moveAway() // what this member carries goes on
	} else {
		t.pruneAll(c)
	}
	c.Send(t.m.tasks, rested{t, t.moved})
}
