package actors

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Beginning is the first row of a task that the caller stores itself, in a transaction without a
// member. The task is then at rest and due at once. So no owner is needed for the write, and the
// next owner finds it as a due task.
type Beginning struct {
	Commit persistence.Commit
	// existing task with the same key that the start cannot continue; nil if none
	Repeats *persistence.TaskRow
	newest  bool
}

// Begin creates the first row of a task's journal, which only records the creation of the task. The
// owner of the task later decides all that follows.
func (m *Member) Begin(ctx context.Context, n engine.NewTask) (*Beginning, error) {
	msg, err := m.startPart().newTask(ctx, n)
	if err != nil {
		return nil, m.requestPart().toCallerError(err)
	}
	if msg.repeats != nil {
		return &Beginning{Commit: persistence.Commit{Task: msg.task, Create: msg.create}, Repeats: msg.repeats, newest: msg.newest}, nil
	}
	msg.start.Apart = true
	limits := m.cfg.Limits.OrDefault()
	limits.Events = 1
	t := newTask(m, msg)
	t.seq = 1
	d, err := flow.Decide(t.state, msg.start, flow.Env{Now: msg.create.CreatedAt, Member: m.incarnation, Limits: limits})
	if err != nil {
		return nil, err
	}
	row := &journalDraft{row: flow.Row{Format: m.lease.RowFormat()}}
	row.addDecision(d, &taskCommand{command: msg.start}, commandAnswer{})
	commit := t.journalPart().buildCommit(row)
	commit.Snapshot, commit.Checkpoint = nil, false
	commit.Rest = &persistence.Rest{Resting: true, Due: commit.At}
	return &Beginning{Commit: commit, newest: msg.newest}, nil
}

// Same returns nil if the same request started an existing task, else the reason why the start is
// refused.
func (b *Beginning) Same(there *persistence.TaskRow) error {
	_, err := compareStart(b.Commit.Create, b.newest, there)
	return err
}

// isFirstRow reports whether the written row counts as the start of its task. It is the first row
// of the task, or the first row after one that Begin created.
func (t taskJournal) isFirstRow() bool { return t.create != nil || t.begunApart }
