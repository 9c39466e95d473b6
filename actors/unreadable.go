package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// unreadableTask holds the record of a task that cannot be read, and the reason. Such a task can
// only be canceled.
type unreadableTask struct {
	record  *persistence.Record
	err     error
	cancels []*taskCommand // cancel commands in progress
}

// abandonResult lists everything that must end together with an unreadable task.
type abandonResult struct {
	unread *unreadableTask
	plan   *flow.Plan // nil if the plan cannot be read either
	jobs   []flow.Effect
	err    error
}

// markUnreadable marks a task that cannot be read, and answers its waiting callers. It does not
// retry, because another read would give the same.
func (t taskLoading) markUnreadable(c actor.Context, l journal.Loaded) {
	t.m.log.Error("task is unreadable: it can only be canceled", "task", t.id, "error", l.Err)
	t.unreadable = &unreadableTask{record: l.Record, err: l.Err}
	if status := flow.TaskStatus(l.Record.Status); status.Ended() {
		c.Send(t.m.tasks, taskEnded{t.task, status, false})
	}
	waiting := t.waiting
	t.waiting = nil
	for _, cmd := range waiting {
		t.answerUnread(c, cmd)
	}
}

func (t taskLoading) answerUnread(c actor.Context, cmd *taskCommand) {
	_, cancel := cmd.command.(flow.Cancel)
	over := flow.TaskStatus(t.unreadable.record.Status).Ended()
	switch {
	case cancel && over:
		cmd.sendAnswer(commandAnswer{})
	case cancel:
		t.prepareAbandon(c, cmd)
	case over:
		cmd.sendAnswer(commandAnswer{err: flow.Errorf(flow.Conflict,
			"the task is %s, and cannot be read any more", t.unreadable.record.Status)})
	default:
		cmd.sendAnswer(commandAnswer{err: flow.Errorf(flow.Conflict, "task %s: %v; it can be canceled", t.id, t.unreadable.err)})
	}
}

// prepareAbandon finds everything that must end with the task. Cancel commands that arrive
// meanwhile are answered together.
func (t taskLoading) prepareAbandon(c actor.Context, cmd *taskCommand) {
	u, m, self := t.unreadable, t.m, c.Self()
	u.cancels = append(u.cancels, cmd)
	if len(u.cancels) > 1 {
		return
	}
	m.work.Run(func() {
		ctx, cancel := m.work.StoreCall()
		defer cancel()
		a := abandonResult{unread: u}
		if a.plan, a.err = m.reader.Plan(ctx, u.record.VersionID); errors.Is(a.err,
			persistence.ErrUnreadable) || flow.ErrorKindOf(a.err) == flow.NotFound {
			a.plan, a.err = nil, nil
		}
		if a.err == nil {
			a.jobs, a.err = m.leftoverPart().queuedJobs(ctx, u.record.ID)
		}
		if a.err == nil {
			var permits []flow.Effect
			permits, a.err = m.leftoverPart().permitsOf(u.record.ID)
			a.jobs = append(a.jobs, permits...)
		}
		if a.err == nil {
			var recalls []flow.Effect
			recalls, a.err = m.leftoverPart().recallsOf(u.record.ID)
			a.jobs = append(a.jobs, recalls...)
		}
		m.sendMessage(self, a)
	})
}

// queuedJobs returns the effects that withdraw a task's jobs from the queue.
func (m taskLeftovers) queuedJobs(ctx context.Context, task string) (jobs []flow.Effect, err error) {
	at, job := int64(0), ""
	for {
		rows, err := m.store.QueueRows(ctx, nil, at, job, fetchRows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			at, job = row.EnqueuedAt, row.JobID
			if _, address, err := flow.ParseJobID(row.JobID); row.Task == task && err == nil {
				jobs = append(jobs, flow.Withdraw{Address: address, Queue: true})
			}
		}
		if len(rows) < fetchRows {
			return jobs, nil
		}
	}
}

// finishAbandon ends an unreadable task. The last row has a snapshot built from the task's columns,
// so that the task is readable again. The unreadable rows stay in the journal until retention
// deletes the task.
func (t taskLoading) finishAbandon(c actor.Context, a abandonResult) {
	u := a.unread
	if t.unreadable != u {
		return
	}
	if a.err != nil {
		for _, cmd := range u.cancels {
			cmd.sendAnswer(commandAnswer{err: a.err})
		}
		u.cancels = nil
		return
	}
	t.unreadable, t.loading = nil, false
	t.state, t.seq, t.storedResting, t.rowPutToRest = persistence.OutlineOf(&u.record.TaskRow,
		a.plan), lastRow(u.record), u.record.Resting, false
	t.columns, t.columnsAt = u.record.Columns, u.record.UpdatedAt
	t.journal = smallJournal // at this size, the end of a task writes a snapshot
	d := flow.Abandon(t.state, t.m.nowMillis(), u.err.Error())
	d.Effects = append(d.Effects, a.jobs...)
	p := t.draftFor(d)
	for i, cmd := range u.cancels {
		if i > 0 {
			d = flow.Decision{}
		}
		p.addDecision(d, cmd, commandAnswer{})
	}
	t.flushDraft(c)
}

// lastRow returns the number of the last row in a task's journal.
func lastRow(rec *persistence.Record) int64 {
	if n := len(rec.Rows); n > 0 {
		return rec.Rows[n-1].Seq
	}
	return rec.SnapshotSeq
}
