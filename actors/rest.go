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
	awake restPhase = iota
	restCommitting
	gone
)

// restRequest asks a task whether it may be retired.
type restRequest struct {
	force bool // the member goes
	again bool // what had landed by then was told before
}

// rest retires the task if it has nothing to do but wait. Forced, because the member goes, it rests as
// soon as nothing is on its way to the store.
func (t *task) rest(c actor.Context, m restRequest) {
	force := m.force
	switch {
	case t.unread != nil && len(t.unread.cancels) == 0:
		t.resting = gone
		c.Send(t.m.tasks, rested{t})
		return
	case force && !m.again:
		t.decideLanded(c)
		c.Send(c.Self(), restRequest{force: true, again: true})
		return
	case force:
		t.returnBegun(c)
	}
	due, quiet := t.quiet()
	switch {
	case force && !t.idleNow():
		self := c.Self()
		t.m.cfg.Host.Clock.AfterFunc(10*time.Millisecond, func() { t.m.tell(self, restRequest{force: force}) })
		return
	case !quiet && !force:
		c.Send(t.m.tasks, restable{t, false})
		return
	case t.state.Status.Ended():
		t.resting = gone
		c.Send(t.m.tasks, rested{t})
		return
	}
	t.resting = restCommitting
	commit := persistence.Commit{Task: t.id, Seq: t.seq, At: t.m.now(), Rest: &persistence.Rest{Resting: quiet, Due: due}}
	t.addSnapshot(&commit)
	if col := columnsOf(t.state); col != t.columns {
		commit.Columns = &col
	}
	t.send(c, commit)
}

// returnBegun lets go of what is not finished before the member goes.
func (t *task) returnBegun(c actor.Context) {
	t.leaveCut()
	if t.idleNow() {
		t.decide(c, &command{cmd: flow.Leave{}})
	}
}

// decideLanded decides what all jobs of the task have reported: nobody is to do that work again. What a step's actor
// has taken before is in the task's mailbox.
func (t *task) decideLanded(c actor.Context) {
	var cmds []*command
	t.basket.drain(func(landed []*flight) { cmds = append(cmds, reportsOf(t.id, landed)) }, false)
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
	due, ok = flow.Idle(t.state)
	if !ok || due > 0 && due < t.m.now()+3*t.m.cfg.IdleAfter.Milliseconds() {
		return 0, false
	}
	return due, true
}

func (t *task) restWritten(c actor.Context, err error) {
	if err != nil {
		t.resting = awake
		t.inflight = &draft{}
		t.forget(c, err)
		c.Send(t.m.tasks, restable{t, false})
		return
	}
	t.resting = gone
	t.pruneAll(c)
	c.Send(t.m.tasks, rested{t})
}
