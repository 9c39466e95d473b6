package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// restPhase is the progress of a task's retirement.
type restPhase uint8

const (
	restNone    restPhase = iota
	restLeaving           // the task waits for its pending work before it moves to another member
	restCommitting
	restDone
)

// restRequest asks a task to retire if it has nothing to do.
type restRequest struct {
	force bool // the member stops
	move  bool // another member will own the task
	again bool // the reports of the task were decided before
	later bool // the task repeats the request because it was busy
}

// restRecheck is the pause before a busy task tries again to rest.
const restRecheck = 10 * time.Millisecond

// tryRest retires the task if it only waits. If the member stops, the task rests as soon as nothing
// is pending.
func (t taskResting) tryRest(c actor.Context, m restRequest) {
	force := m.force
	switch {
	case t.unreadable != nil && len(t.unreadable.cancels) == 0:
		t.finishWork()
		c.Send(t.m.tasks, taskRested{task: t.task})
		return
	case m.move:
		t.handOver(c, m.later)
		return
	case force && !m.again:
		t.decideLanded(c)
		c.Send(c.Self(), restRequest{force: true, again: true})
		return
	case force:
		t.returnJobs(c)
	}
	_, quiet := t.canRest()
	switch {
	case force && !t.idleNow():
		t.restLater(c, false)
		return
	case !quiet && !force:
		c.Send(t.m.tasks, restAnswer{t.task, false})
		return
	case t.state.Status.Ended():
		t.finishWork()
		c.Send(t.m.tasks, taskRested{task: t.task})
		return
	}
	t.commitRest(c)
}

// finishWork marks that this actor decides nothing more. Later messages and reports are for the
// next actor of the task.
func (t *task) finishWork() {
	t.resting = restDone
	t.inbox.retireOwner()
}

// restLater schedules another try for a task that must rest.
func (t taskResting) restLater(c actor.Context, move bool) {
	self := c.Self()
	t.m.work.After(restRecheck, func() { t.m.sendMessage(self, restRequest{force: true, move: move, later: true}) })
}

// commitRest stores that the task is at rest or has no owner, unless the last row did so. A task
// that was loaded while at rest writes the rest again, because it may have been due, and the write
// checks for a newer state.
func (t taskResting) commitRest(c actor.Context) {
	due, quiet := t.canRest()
	t.movesAway, t.resting = t.resting == restLeaving, restCommitting
	if t.rowPutToRest && quiet {
		t.restWritten(c, nil)
		return
	}
	commit := persistence.Commit{Task: t.id, Seq: t.seq, At: t.m.nowMillis(), Rest: &persistence.Rest{Resting: quiet, Due: due}}
	if t.journalPart().restsWithSnapshot() {
		t.journalPart().takeSnapshot(&commit)
	}
	if col := persistence.ColumnsOf(t.state); col != t.columns {
		commit.Columns = &col
	}
	t.sendCommit(c, commit)
}

// returnJobs gives back unfinished jobs before the member stops.
func (t taskResting) returnJobs(c actor.Context) {
	t.turnPart().dropCut()
	if t.idleNow() {
		t.decideCommand(c, &taskCommand{command: t.m.peers.leaveCommand(t.id)})
	}
}

// decideLanded decides all reports that have arrived, so that their work is not repeated. Reports
// that a step actor already passed on are in the mailbox of the task.
func (t taskResting) decideLanded(c actor.Context) {
	var cmds []*taskCommand
	t.inbox.drainReports(func(landed []*activeJob) { cmds = append(cmds, reportsOf(t.id, landed)) }, false)
	t.decideInTurn(cmds, func(cmd *taskCommand) {
		if !t.holdCommand(cmd) {
			t.decideCommand(c, cmd)
		}
	})
}

// idleNow reports whether nothing is loading, in flight, or left to decide.
func (t *task) idleNow() bool {
	return !t.loading && t.inflight == nil && t.openDraft == nil && len(t.cutCommands) == 0
}

// canRest reports whether a task only waits, and when it is due in Unix milliseconds. A due time of
// 0 means that only a message wakes the task.
func (t taskResting) canRest() (due int64, ok bool) {
	if !t.idleNow() {
		return 0, false
	}
	if t.state.Status.Ended() {
		return 0, true
	}
	if t.unfinished {
		return 0, false
	}
	if due, ok = flow.Idle(t.state); !ok || !t.isLongWait(due) {
		return 0, false
	}
	return due, true
}

// isLongWait reports whether a wait until due is long enough to leave memory. A due time of 0 means
// a wait for a message.
func (t taskResting) isLongWait(due int64) bool {
	return due == 0 || due >= t.m.nowMillis()+3*t.m.cfg.IdleAfter.Milliseconds()
}

func (t taskResting) restWritten(c actor.Context, err error) {
	if err != nil {
		t.resting, t.movesAway, t.flushing = restNone, false, nil
		t.inflight = &journalDraft{}
		t.loadPart().discardState(c, err)
		c.Send(t.m.tasks, restAnswer{t.task, false})
		return
	}
	if t.movesAway {
		t.resting = restDone
		t.inbox.detachOwner() // running jobs on this member continue
	} else {
		t.pruneAll(c)
		t.finishWork()
	}
	c.Send(t.m.tasks, taskRested{t.task, t.movesAway})
}
