package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// journalDraft is the next row of a journal, with the effects and answers that are released when it
// is written.
type journalDraft struct {
	row        flow.Row
	encodedRow []byte // the row, after it is sent
	// final status of the task; "" if the task continues or was retried at once
	ended             flow.TaskStatus
	effects           []flow.Effect
	tallies           []flow.Tally
	approvals         []flow.Approval // approvals that the row starts or ends
	answers           []pendingAnswer
	requestCount      int                  // number of answers with a request id
	started           int                  // number of started attempts
	newObjects        []persistence.Object // objects that the row refers to
	heartbeatAttempts []flow.Address       // attempts whose workers have sent heartbeats
	putsToRest        bool                 // the row puts the task to rest
}

type pendingAnswer struct {
	cmd *taskCommand
	a   commandAnswer
}

// addDecision adds a decision to the draft. The events of the decision are stored in the row only.
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

// isFull reports whether a draft holds as many requests as a task remembers. Beyond that number,
// the task would forget the first request and could not recognize its repetition.
func (p *journalDraft) isFull() bool { return p != nil && p.requestCount >= flow.KeptRequests }

// sendAnswers sends the answers of a stored row. A claim that expired before the row was stored
// gets flow.ErrOver.
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

// noteEvents records the status in which the task ended, and the attempts with news of their
// workers.
func (p *journalDraft) noteEvents(events []flow.Event) {
	for i := range events {
		switch e := &events[i]; e.Type {
		case flow.TaskEnded:
			p.ended = flow.TaskStatus(e.Status)
		case flow.TaskRetried:
			p.ended = ""
		case flow.AttemptStatusChanged, flow.AttemptExtended:
			p.heartbeatAttempts = append(p.heartbeatAttempts, e.Address())
		}
	}
}

const (
	// columnsInterval is the maximum age, in milliseconds, of the cursor and counters in listings
	// while a task is busy. When a task rests, they are current.
	columnsInterval = 1000
	// smallJournal is the journal size in bytes above which a snapshot is written when the task
	// rests or ends. A snapshot of a smaller journal costs more than it saves.
	smallJournal = 16 << 10
)

// buildCommit converts a draft to the form of the store. The draft must already be applied to
// t.state.
func (t taskJournal) buildCommit(p *journalDraft) persistence.Commit {
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
	// without room for a snapshot, a later row gets the checkpoint
	case due && (t.state.Status.Ended() || t.m.committer.Snapshots.HasRoom(nil)):
		t.takeSnapshot(&c)
		c.Checkpoint = true
	case t.state.Status.Ended() && t.journal >= smallJournal:
		t.takeSnapshot(&c)
		c.Checkpoint = t.snapshot >= persistence.LargeSnapshot
	}
	return c
}

// canPark reports whether a row may put the task to rest at once because the task has a long wait.
// A row that withdraws jobs may not, because the withdrawal must be repeated after a crash. A
// journal that needs a snapshot gets it later, when the task rests.
func (t taskJournal) canPark(p *journalDraft) (due int64, ok bool) {
	if len(t.cutCommands) > 0 || t.unfinished || t.restsWithSnapshot() || slices.ContainsFunc(p.effects, withdrawsJob) {
		return 0, false
	}
	due, ok = flow.Parked(t.state)
	return due, ok && t.restPart().isLongWait(due)
}

func withdrawsJob(e flow.Effect) bool {
	switch e.(type) {
	case flow.Withdraw, flow.Reclaim:
		return true
	}
	return false
}

func (t taskJournal) addColumns(c *persistence.Commit) {
	col := persistence.ColumnsOf(t.state)
	changed := col.Status != t.columns.Status || col.Paused != t.columns.Paused ||
		col.Error != t.columns.Error || col.EndedAt != t.columns.EndedAt ||
		col.Waits != t.columns.Waits || col.Wait != t.columns.Wait
	if !changed && (col == t.columns || c.Rest == nil && c.At-t.columnsAt < columnsInterval) {
		return
	}
	t.columns, t.columnsAt = col, c.At
	c.Columns = new(persistence.Columns)
	*c.Columns = col
}

// restsWithSnapshot reports whether a resting task writes a snapshot. A short journal is quick to
// fold, and a large state costs too much to write at each rest. A large snapshot is written only
// when the journal is due for a checkpoint.
func (t taskJournal) restsWithSnapshot() bool {
	return t.journal >= smallJournal && (t.snapshot < persistence.LargeSnapshot || persistence.CheckpointDue(t.journal, t.snapshot))
}

func (t taskJournal) takeSnapshot(c *persistence.Commit) {
	c.Snapshot = flow.EncodeSnapshot(t.state)
	t.journal, t.snapshot = 0, c.Snapshot.Len()
}

// waitsForSnapshot reports whether the last commit of an ended task has to wait until there is room
// for its snapshot.
func (t taskJournal) waitsForSnapshot(self *actor.PID) bool {
	return t.state.Status.Ended() && t.journal+t.openDraft.row.Len() >= smallJournal && !t.m.committer.Snapshots.HasRoom(self)
}
