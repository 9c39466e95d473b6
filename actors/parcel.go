package actors

import (
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// parcel is what one row of the journal holds, and what is heard once it is written.
type parcel struct {
	events  []flow.Event // until it is sent
	room    *room        // that they may be in
	ended   flow.TaskStatus
	effects []flow.Effect
	answers []pending
	asked   int // how many of them carry a request id
}

type pending struct {
	cmd *command
	a   answer
}

// add adds a decision, whose events may be in a room.
func (p *parcel) add(d flow.Decision, r *room, cmd *command, a answer) {
	if len(p.events) == 0 && len(d.Events) > 0 {
		p.events, p.room = d.Events, r
	} else {
		p.events = append(p.events, d.Events...)
		r.leave()
	}
	if p.effects == nil {
		p.effects = d.Effects
	} else {
		p.effects = append(p.effects, d.Effects...)
	}
	p.answers = append(p.answers, pending{cmd, a})
	if cmd.request != "" {
		p.asked++
	}
}

// full says whether a parcel holds as many requests as a task remembers: were its answer lost, more of
// them could not be told from new ones.
func (p *parcel) full() bool { return p != nil && p.asked >= flow.KeptRequests }

func (p *parcel) answerEach() {
	for _, x := range p.answers {
		x.cmd.answer(x.a)
	}
}

func (p *parcel) answerAll(a answer) {
	if p == nil {
		return
	}
	for _, x := range p.answers {
		x.cmd.answer(a)
	}
}

func (p *parcel) commands() []*command {
	if p == nil {
		return nil
	}
	list := make([]*command, 0, len(p.answers))
	for _, x := range p.answers {
		list = append(list, x.cmd)
	}
	return list
}

// row is the parcel's events as a row, for which they are no longer needed.
func (p *parcel) row() []byte {
	row := flow.AppendEvents(nil, p.events)
	p.ended = p.end()
	p.events = nil
	p.room.leave()
	return row
}

// end is what the task ended as, "" when it goes on: it did not end, or was retried at once.
func (p *parcel) end() (status flow.TaskStatus) {
	for i := range p.events {
		switch e := &p.events[i]; e.Type {
		case flow.TaskEnded:
			status = flow.TaskStatus(e.Status)
		case flow.TaskRetried:
			status = ""
		}
	}
	return status
}

const (
	// columnsEvery is how old cursor and counters in listings may become while a task is busy.
	columnsEvery = 1000
	// At rest and at the end a snapshot is written when it saves a reader more than it costs to write.
	smallJournal = 16 << 10
)

// commit makes the store's form of a parcel. The state is the one after it.
func (t *task) commit(p *parcel) persistence.Commit {
	c := persistence.Commit{Task: t.id, Create: t.create, Seq: t.seq, Events: p.row(), At: t.state.UpdatedAt}
	t.journal += len(c.Events)
	t.addColumns(&c)
	if t.asleep {
		c.Rest = &persistence.Rest{}
	}
	t.addQueue(&c, p.effects)
	if persistence.CheckpointDue(t.journal, t.snapshot) {
		t.takeSnapshot(&c)
		c.Checkpoint = true
	} else if t.state.Status.Ended() {
		t.addSnapshot(&c)
	}
	return c
}

func (t *task) addColumns(c *persistence.Commit) {
	col := columnsOf(t.state)
	changed := col.Status != t.columns.Status || col.Paused != t.columns.Paused || col.Error != t.columns.Error || col.EndedAt != t.columns.EndedAt
	if !changed && (col == t.columns || c.At-t.columnsAt < columnsEvery) {
		return
	}
	t.columns, t.columnsAt = col, c.At
	c.Columns = new(persistence.Columns)
	*c.Columns = col
}

func columnsOf(s *flow.State) persistence.Columns {
	return persistence.Columns{
		Status: string(s.Status), Cursor: s.Root.Cursor, LastAction: s.Root.LastAction, Error: s.Error,
		Paused: s.Paused(), Steps: s.Steps, EndedAt: s.EndedAt,
	}
}

// addSnapshot adds one where it saves more than it costs: a short journal is as quick to fold.
func (t *task) addSnapshot(c *persistence.Commit) {
	if t.journal < smallJournal {
		return
	}
	t.takeSnapshot(c)
}

func (t *task) takeSnapshot(c *persistence.Commit) {
	c.Snapshot = flow.EncodeSnapshot(t.state)
	t.journal, t.snapshot = 0, len(c.Snapshot)
}

// addQueue makes and ends the rows of jobs that wait for pollers, with the events they follow from.
func (t *task) addQueue(c *persistence.Commit, effects []flow.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case flow.Dispatch:
			if e.Job.Exec.Type == flow.ExecQueue && e.Job.Deliveries == 0 {
				c.Enqueue = append(c.Enqueue, persistence.QueueRow{
					JobID: e.Job.ID(), Task: t.id, Service: e.Job.Exec.Service, EnqueuedAt: e.Job.EnqueuedAt,
					Turn: e.Job.Turn, Size: e.Job.Size(), Labels: e.Job.Exec.Labels,
				})
			}
		case flow.Over:
			if e.Queue {
				c.Dequeue = append(c.Dequeue, flow.JobID(t.id, e.Address))
			}
		case flow.Withdraw:
			if e.Queue {
				c.Dequeue = append(c.Dequeue, flow.JobID(t.id, e.Address))
			}
		}
	}
}
