package actors

import (
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// draft is the next row of a journal, and what is heard once it is written.
type draft struct {
	row       flow.Row
	stored    []byte          // the row, once it is sent
	ended     flow.TaskStatus // "" when the task goes on: it did not end, or was retried at once
	effects   []flow.Effect
	tallies   []flow.Tally
	approvals []flow.Approval // that begin or end
	answers   []pending
	asked     int                  // how many of them carry a request id
	started   int                  // attempts
	made      []persistence.Object // that the row refers to
	heard     []flow.Address       // attempts whose workers have told something
	rests     bool                 // it puts the task to rest
}

type pending struct {
	cmd *command
	a   answer
}

// add adds a decision. Its events are not kept beside the row.
func (p *draft) add(d flow.Decision, cmd *command, a answer) {
	p.row.Add(d.Events)
	p.note(d.Events)
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
	p.answers = append(p.answers, pending{cmd, a})
	if cmd.request != "" {
		p.asked++
	}
}

// full says whether a draft holds as many requests as a task remembers: were its answer lost, more of
// them could not be told from new ones.
func (p *draft) full() bool { return p != nil && p.asked >= flow.KeptRequests }

// answerEach tells what is stored. A claim may be over by then: while the store did not answer its time has run out.
func (p *draft) answerEach(state *flow.State) {
	for _, x := range p.answers {
		if claim, ok := x.cmd.cmd.(flow.Claim); ok && x.a.err == nil && !state.Holds(claim.Address, claim.Token) {
			x.a = answer{err: flow.ErrOver}
		}
		x.cmd.answer(x.a)
	}
}

func (p *draft) commands() []*command {
	if p == nil {
		return nil
	}
	list := make([]*command, 0, len(p.answers))
	for _, x := range p.answers {
		list = append(list, x.cmd)
	}
	return list
}

// note notes what the task ended as, and whose workers are heard of.
func (p *draft) note(events []flow.Event) {
	for i := range events {
		switch e := &events[i]; e.Type {
		case flow.TaskEnded:
			p.ended = flow.TaskStatus(e.Status)
		case flow.TaskRetried:
			p.ended = ""
		case flow.AttemptNoted, flow.AttemptExtended:
			p.heard = append(p.heard, e.Address())
		}
	}
}

const (
	// columnsEvery is how old cursor and counters in listings may become while a task is busy. At rest they are those of the last row.
	columnsEvery = 1000
	// At rest and at the end a snapshot is written when it saves a reader more than it costs to write.
	smallJournal = 16 << 10
)

// commit makes the store's form of a draft. The state is the one after it.
func (t *task) commit(p *draft) persistence.Commit {
	c := persistence.Commit{Task: t.id, Create: t.create, Seq: t.seq, Events: p.row.Bytes(), At: t.state.UpdatedAt}
	p.stored = c.Events
	t.journal += len(c.Events)
	due, rests := t.parks(p)
	p.rests = rests
	if rests || t.asleep {
		c.Rest = &persistence.Rest{Resting: rests, Due: due}
	}
	t.addColumns(&c)
	t.addQueue(&c, p)
	if len(p.approvals) > 0 {
		c.Approvals = persistence.ApprovalRows(t.state, p.approvals)
	}
	switch due := persistence.CheckpointDue(t.journal, t.snapshot); {
	case due && (t.state.Status.Ended() || t.m.snapshots.room(nil)): // it may as well be the next row that has one
		t.takeSnapshot(&c)
		c.Checkpoint = true
	case t.state.Status.Ended() && t.journal >= smallJournal:
		t.takeSnapshot(&c)
		c.Checkpoint = t.snapshot >= persistence.LargeSnapshot
	}
	return c
}

// parks says whether a row may put the task to rest at once, since all that is left is to wait, and for long. Not one with which jobs are
// withdrawn: whoever finds the task unfinished after a crash says so again. A journal that is worth a snapshot has it when nothing has come for a while.
func (t *task) parks(p *draft) (due int64, ok bool) {
	if len(t.more) > 0 || t.unfinished || t.restsWithSnapshot() || slices.ContainsFunc(p.effects, withdraws) {
		return 0, false
	}
	due, ok = flow.Parked(t.state)
	return due, ok && t.long(due)
}

func withdraws(e flow.Effect) bool {
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
	if !changed && (col == t.columns || c.Rest == nil && c.At-t.columnsAt < columnsEvery) {
		return
	}
	t.columns, t.columnsAt = col, c.At
	c.Columns = new(persistence.Columns)
	*c.Columns = col
}

// restsWithSnapshot says whether one is written when the task rests, because that saves more than it costs: a short journal is as quick to fold, and
// a large state would be written as often as its task rests. So many rows as are worth a checkpoint are there when there was no room for that.
func (t *task) restsWithSnapshot() bool {
	return t.journal >= smallJournal && (t.snapshot < persistence.LargeSnapshot || persistence.CheckpointDue(t.journal, t.snapshot))
}

func (t *task) takeSnapshot(c *persistence.Commit) {
	c.Snapshot = flow.EncodeSnapshot(t.state)
	t.journal, t.snapshot = 0, c.Snapshot.Len()
}
