package actors

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// journalDraft is the next row of a journal, and what is heard once it is written.
type journalDraft struct {
	row               flow.Row
	encodedRow        []byte          // the row, once it is sent
	ended             flow.TaskStatus // "" when the task goes on: it did not end, or was retried at once
	effects           []flow.Effect
	tallies           []flow.Tally
	approvals         []flow.Approval // that begin or end
	answers           []pendingAnswer
	requestCount      int                  // how many of them carry a request id
	started           int                  // attempts
	newObjects        []persistence.Object // that the row refers to
	heartbeatAttempts []flow.Address       // attempts whose workers have told something
	putsToRest        bool                 // it puts the task to rest
}

type pendingAnswer struct {
	cmd *taskCommand
	a   commandAnswer
}

// addDecision adds a decision. Its events are not kept beside the row.
func (p *journalDraft) addDecision(d flow.Decision, cmd *taskCommand, a commandAnswer) {
	p.row.Add(d.Events)
	p.noteEvents(d.Events)
	p.started += d.Started
	if p.effects == nil {
		p.effects = d.Effects
	} else {
		p.effects = append(p.effects, d.Effects...)
	}
	if p.tallies == nil {
		p.tallies = d.Tallies
	} else {
		p.tallies = append(p.tallies, d.Tallies...)
	}
	p.approvals = flow.MergeApprovals(p.approvals, d.Approvals...)
	p.answers = append(p.answers, pendingAnswer{cmd, a})
	if cmd.request != "" {
		p.requestCount++
	}
}

// isFull reports whether a draft holds as many requests as a task remembers: were its answer lost,
// more of them could not be told from new ones.
func (p *journalDraft) isFull() bool { return p != nil && p.requestCount >= flow.KeptRequests }

// sendAnswers tells what is stored. A claim may be over by then: while the store did not answer its
// time has run out.
func (p *journalDraft) sendAnswers(state *flow.State) {
	for _, x := range p.answers {
		if claim, ok := x.cmd.command.(flow.Claim); ok && x.a.err == nil && !state.Holds(claim.Address, claim.Token) {
			x.a = commandAnswer{err: flow.ErrOver}
		}
		x.cmd.sendAnswer(x.a)
	}
}

func (p *journalDraft) commands() []*taskCommand {
	if p == nil {
		return nil
	}
	list := make([]*taskCommand, 0, len(p.answers))
	for _, x := range p.answers {
		list = append(list, x.cmd)
	}
	return list
}

// noteEvents notes what the task ended as, and whose workers are heard of.
func (p *journalDraft) noteEvents(events []flow.Event) {
	for i := range events {
		switch e := &events[i]; e.Type {
		case flow.TaskEnded:
			p.ended = flow.TaskStatus(e.Status)
		case flow.TaskRetried:
			p.ended = ""
		case flow.AttemptNoted, flow.AttemptExtended:
			p.heartbeatAttempts = append(p.heartbeatAttempts, e.Address())
		}
	}
}

const (
	// columnsInterval is how old cursor and counters in listings may become while a task is busy.
	// At rest they are those of the last row.
	columnsInterval = 1000
	// At rest and at the end a snapshot is written when it saves a reader more than it costs to
	// write.
	smallJournal = 16 << 10
)

// buildCommit makes the store's form of a draft. The state is the one after it.
func (t *task) buildCommit(p *journalDraft) persistence.Commit {
	c := persistence.Commit{Task: t.id, Create: t.create, Seq: t.seq, Events: p.row.Bytes(), At: t.state.UpdatedAt}
	p.encodedRow = c.Events
	t.journal += len(c.Events)
	due, rests := t.canPark(p)
	p.putsToRest = rests
	if rests || t.storedResting {
		c.Rest = &persistence.Rest{Resting: rests, Due: due}
	}
	t.addColumns(&c)
	t.addQueue(&c, p)
	if len(p.approvals) > 0 {
		c.Approvals = persistence.ApprovalRows(t.state, p.approvals)
	}
	switch due := persistence.CheckpointDue(t.journal, t.snapshot); {
	case due && (t.state.Status.Ended() || t.m.snapshots.hasRoom(nil)): // it may as well be the next row that has one
		t.takeSnapshot(&c)
		c.Checkpoint = true
	case t.state.Status.Ended() && t.journal >= smallJournal:
		t.takeSnapshot(&c)
		c.Checkpoint = t.snapshot >= persistence.LargeSnapshot
	}
	return c
}

// canPark reports whether a row may put the task to rest at once, since all that is left is to
// wait, and for long. Not one with which jobs are withdrawn: whoever finds the task unfinished
// after a crash says so again. A journal that is worth a snapshot has it when nothing has come for
// a while.
func (t *task) canPark(p *journalDraft) (due int64, ok bool) {
	if len(t.cutCommands) > 0 || t.unfinished || t.restsWithSnapshot() || slices.ContainsFunc(p.effects, withdrawsJob) {
		return 0, false
	}
	due, ok = flow.Parked(t.state)
	return due, ok && t.isLongWait(due)
}

func withdrawsJob(e flow.Effect) bool {
	switch e.(type) {
	case flow.Withdraw, flow.Reclaim:
		return true
	}
	return false
}

func (t *task) addColumns(c *persistence.Commit) {
	col := persistence.ColumnsOf(t.state)
	changed := col.Status != t.columns.Status || col.Paused != t.columns.Paused || col.Error != t.columns.Error || col.EndedAt != t.columns.EndedAt ||
		col.Waits != t.columns.Waits || col.Wait != t.columns.Wait
	if !changed && (col == t.columns || c.Rest == nil && c.At-t.columnsAt < columnsInterval) {
		return
	}
	t.columns, t.columnsAt = col, c.At
	c.Columns = new(persistence.Columns)
	*c.Columns = col
}

// restsWithSnapshot reports whether one is written when the task rests, because that saves more
// than it costs: a short journal is as quick to fold, and a large state would be written as often
// as its task rests. So many rows as are worth a checkpoint are there when there was no room for
// that.
func (t *task) restsWithSnapshot() bool {
	return t.journal >= smallJournal && (t.snapshot < persistence.LargeSnapshot || persistence.CheckpointDue(t.journal, t.snapshot))
}

func (t *task) takeSnapshot(c *persistence.Commit) {
	c.Snapshot = flow.EncodeSnapshot(t.state)
	t.journal, t.snapshot = 0, c.Snapshot.Len()
}
