package actors

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// externalWatcher looks after the work outside that tasks of this member's shards wait for. Such a
// task is a row, and not in memory; so is each piece of its work. When which of them is to be
// looked at is in the store, and here is one timer for the earliest. A few are looked at at once;
// what that came to is written together, and only an end brings a task into memory. Nothing is lost
// with a member: whoever gets the shard looks on.
type externalWatcher struct {
	m           *Member
	mu          sync.Mutex
	busy        map[persistence.ExternalID]bool // being looked at, or what that came to is being written
	pendingRows []persistence.ExternalRow       // those of them that nobody is at
	activePolls int                             // how many are being looked at
	notes       []persistence.ExternalNote      // to be written

	reading, writing bool
	mayHaveMore      bool // there may be others that are due
	rereadNeeded     bool // something has changed since they were read
	timerAt          int64
	stopTimer        func() bool // of the timer for that time
}

// How many are read at once, and looked at at once; how often they are read in any case, because
// word of them may have been lost.
const (
	externalsAtOnce = 100
	externalPollers = 50
	externalRescan  = 5 * time.Second
)

func newExternals(m *Member) *externalWatcher {
	return &externalWatcher{m: m, busy: map[persistence.ExternalID]bool{}}
}

// triggerRead reads what is due, unless there is enough to look at already. It never blocks.
func (x *externalWatcher) triggerRead() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rereadNeeded = true
	x.readIfIdle()
}

// readIfIdle reads what is due when there is nothing to look at. The lock is held.
func (x *externalWatcher) readIfIdle() {
	if !x.reading && len(x.pendingRows) == 0 {
		x.reading = true
		x.m.runBackground(x.readDue)
	}
}

// readDue has those looked at that are due, and sets the timer for the one that is next.
func (x *externalWatcher) readDue() {
	x.mu.Lock()
	x.rereadNeeded = false
	limit := externalsAtOnce + len(x.busy)
	x.mu.Unlock()
	rows, err := x.queryDue(limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading, x.mayHaveMore = false, err == nil && len(rows) == limit
	if x.rereadNeeded { // since they were read
		defer x.readIfIdle()
	}
	x.armTimer(x.m.nowMillis() + externalRescan.Milliseconds())
	for _, row := range rows {
		switch {
		case x.busy[row.Key()]:
			x.rereadNeeded = x.rereadNeeded || row.Recalled
		case row.NextAt > x.m.nowMillis():
			x.mayHaveMore = false
			x.armTimer(row.NextAt)
			x.startPollers()
			return
		default:
			x.busy[row.Key()] = true
			x.pendingRows = append(x.pendingRows, row)
		}
	}
	x.startPollers()
}

func (x *externalWatcher) queryDue(limit int) ([]persistence.ExternalRow, error) {
	shards := x.m.owned.ownedShards()
	if shards != nil && len(shards) == 0 || x.m.stopping.Load() {
		return nil, nil
	}
	ctx, cancel := x.m.storeCall()
	defer cancel()
	rows, err := x.m.store.NextExternals(ctx, shards, limit)
	x.m.recordStoreCall(externalsNotRead, "", err)
	return rows, err
}

// startPollers has as many looked at at once as may be.
func (x *externalWatcher) startPollers() {
	for n := min(externalPollers-x.activePolls, len(x.pendingRows)); n > 0; n-- {
		x.activePolls++
		x.m.runBackground(x.pollPending)
	}
}

// pollPending looks at those in line until there is none. One of another member's task meanwhile is
// left to that one.
func (x *externalWatcher) pollPending() {
	for {
		row, ok := x.takeRow()
		if !ok || !x.pollRow(row) {
			return
		}
	}
}

func (x *externalWatcher) takeRow() (row persistence.ExternalRow, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.pendingRows) > 0 && !x.m.stopping.Load() {
		row, x.pendingRows = x.pendingRows[0], x.pendingRows[1:]
		if x.m.owned.ownsTask(row.Task) {
			return row, true
		}
		delete(x.busy, row.Key())
	}
	x.activePolls--
	if x.mayHaveMore || x.rereadNeeded {
		x.readIfIdle()
	}
	return row, false
}

// enqueueNote has written what looking at one came to.
func (x *externalWatcher) enqueueNote(n persistence.ExternalNote) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, n)
	if !x.writing {
		x.writing = true
		x.m.runBackground(x.writeNotes)
	}
}

// writeNotes writes what there is to note, again and again: more comes meanwhile.
func (x *externalWatcher) writeNotes() {
	for {
		x.mu.Lock()
		notes := x.notes
		x.notes = nil
		x.writing = len(notes) > 0
		x.mu.Unlock()
		if len(notes) == 0 || !x.storeNotes(notes) {
			return
		}
	}
}

// storeNotes is false when the member goes.
func (x *externalWatcher) storeNotes(notes []persistence.ExternalNote) bool {
	for {
		ctx, cancel := x.m.storeCall()
		err := x.m.store.NoteExternals(ctx, x.m.incarnation, notes)
		cancel()
		if errors.Is(err, persistence.ErrFenced) {
			return false // others look on
		}
		x.m.recordStoreCall(externalsNotWritten, "", err)
		if err == nil {
			x.releaseNoted(notes)
			return true
		}
		if !x.m.sleepFor(time.Second) {
			return false
		}
	}
}

// releaseNoted lets those be looked at again when it is their time.
func (x *externalWatcher) releaseNoted(notes []persistence.ExternalNote) {
	x.mu.Lock()
	for i := range notes {
		delete(x.busy, notes[i].ExternalID)
		if !notes[i].Gone {
			x.armTimer(notes[i].NextAt)
		}
	}
	again := x.rereadNeeded
	x.mu.Unlock()
	if again {
		x.triggerRead()
	}
}

// releaseRow lets one be looked at by whoever has its task now.
func (x *externalWatcher) releaseRow(id persistence.ExternalID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.busy, id)
}

// armTimer has the timer ring at a time, if it would ring later.
func (x *externalWatcher) armTimer(at int64) {
	if x.timerAt != 0 && x.timerAt <= at || x.m.ctx.Err() != nil {
		return
	}
	if x.stopTimer != nil {
		x.stopTimer()
	}
	x.timerAt = at
	x.stopTimer = x.m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-x.m.nowMillis())+time.Millisecond, func() {
		x.mu.Lock()
		if x.timerAt == at {
			x.timerAt = 0
		}
		x.mu.Unlock()
		x.triggerRead()
	})
}

// addExternals makes and ends the rows of work outside, with the events they follow from.
func (t *task) addExternals(c *persistence.Commit, e flow.Effect) {
	if c.Externals == nil {
		c.Externals = &persistence.ExternalChanges{}
	}
	id := func(a flow.Address, index int) persistence.ExternalID {
		return persistence.ExternalID{Task: t.id, Job: flow.JobID(t.id, a), Index: index}
	}
	switch e := e.(type) {
	case flow.Track:
		for _, x := range e.Jobs {
			c.Externals.Track = append(c.Externals.Track, persistence.ExternalRow{External: x, NextAt: x.StartedAt})
		}
	case flow.Untrack:
		c.Externals.Untrack = append(c.Externals.Untrack, id(e.Address, e.Index))
	case flow.Recall:
		for _, index := range e.Indexes {
			c.Externals.Recall = append(c.Externals.Recall, id(e.Address, index))
		}
	}
}

// recallsOf finds the work outside of a task that cannot be read, each as what calls it off.
func (m *Member) recallsOf(task string) (recalls []flow.Effect, err error) {
	ctx, cancel := m.storeCall()
	defer cancel()
	rows, err := m.store.ExternalsOf(ctx, task)
	for i := range rows {
		_, a, err := flow.ParseJobID(rows[i].Job)
		if err == nil && !rows[i].Recalled {
			recalls = append(recalls, flow.Recall{Address: a, Indexes: []int{rows[i].Index}})
		}
	}
	return slices.Clip(recalls), err
}
