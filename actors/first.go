package actors

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Beginning is what a task begins with, for whoever stores it himself, in a transaction that no
// member has a part in: there is the task, at rest and due at once. So it needs no owner to be
// written, and whoever owns it when that is stored takes it up like any other that is due.
type Beginning struct {
	Commit  persistence.Commit
	Repeats *persistence.TaskRow // the task that the same start has created before, and that would not take it any longer; nil = none
	newest  bool
}

// Begin makes the first row of a task's journal: that it was created, and no more. What follows
// from that its owner decides.
func (m *Member) Begin(ctx context.Context, n engine.NewTask) (*Beginning, error) {
	msg, err := m.newTask(ctx, n)
	if err != nil {
		return nil, m.toCallerError(err)
	}
	if msg.repeats != nil {
		return &Beginning{Commit: persistence.Commit{Task: msg.task, Create: msg.create}, Repeats: msg.repeats, newest: msg.newest}, nil
	}
	msg.start.Apart = true
	limits := m.cfg.Limits.OrDefault()
	limits.Events = 1
	t := &task{effectPerformer: effectPerformer{m: m, task: msg.task}, id: msg.task, create: msg.create, state: flow.NewState(msg.task, msg.plan), seq: 1}
	d, err := flow.Decide(t.state, msg.start, flow.Env{Now: msg.create.CreatedAt, Member: m.incarnation, Limits: limits})
	if err != nil {
		return nil, err
	}
	row := &journalDraft{row: flow.Row{Format: int(m.format.Load())}}
	row.addDecision(d, &taskCommand{command: msg.start}, commandAnswer{})
	commit := t.buildCommit(row)
	commit.Snapshot, commit.Checkpoint = nil, false
	commit.Rest = &persistence.Rest{Resting: true, Due: commit.At}
	return &Beginning{Commit: commit, newest: msg.newest}, nil
}

// Same reports whether a task that is there already was begun by the same request: nil, or why it
// was not.
func (b *Beginning) Same(there *persistence.TaskRow) error {
	_, err := compareStart(b.Commit.Create, b.newest, there)
	return err
}

// isFirstRow says that the row which was written just now counts as the beginning of its task: it
// is the first one, or the first that a member has stored.
func (t *task) isFirstRow() bool { return t.create != nil || t.begunApart }
