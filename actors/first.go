package actors

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Beginning is the first row of a task, for a caller that stores it itself, in a transaction
// without a member. The task is then at rest and due at once. So no owner is needed to write it,
// and the owner at that time takes it like any other due task.
type Beginning struct {
	Commit persistence.Commit
	// task that the same start has created before and that can no longer take it; nil if none
	Repeats *persistence.TaskRow
	newest  bool
}

// Begin creates the first row of a task's journal: only that the task was created. Its owner
// decides what follows.
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

// Same returns nil if an existing task was started by the same request, else the reason why not.
func (b *Beginning) Same(there *persistence.TaskRow) error {
	_, err := compareStart(b.Commit.Create, b.newest, there)
	return err
}

// isFirstRow reports whether the row that was just written counts as the start of its task: it is
// the first row, or the first that a member has stored.
func (t taskJournal) isFirstRow() bool { return t.create != nil || t.begunApart }
