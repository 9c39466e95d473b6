package actors

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// externalWatcher polls the external work that tasks of this member's shards wait for. Such a task
// is a row and not in memory, and so is each piece of its work. The store holds the time of each
// next poll, and the watcher has one timer for the earliest. It polls a few pieces at once and
// writes their results together; only an end brings a task into memory. Nothing is lost with a
// member: the next owner of the shard continues to poll.
type externalWatcher struct {
	m           *Member
	mu          sync.Mutex
	busy        map[persistence.ExternalID]bool // being polled, or its result is being written
	pendingRows []persistence.ExternalRow       // busy rows that no goroutine polls yet
	activePolls int                             // number of goroutines that poll
	notes       []persistence.ExternalNote      // results to be written

	reading, writing bool
	mayHaveMore      bool // there may be other due rows
	rereadNeeded     bool // something has changed since the rows were read
	timerAt          int64
	stopTimer        func() bool // stops the timer for timerAt
}

// externalsAtOnce is how many due rows are read at once. externalPollers is how many are polled at
// once. externalRescan is how often they are read in any case, because a notice may be lost.
const (
	externalsAtOnce = 100
	externalPollers = 50
	externalRescan  = 5 * time.Second
)

func newExternals(m *Member) *externalWatcher {
	return &externalWatcher{m: m, busy: map[persistence.ExternalID]bool{}}
}

// triggerRead reads the due rows, unless enough are pending already. It never blocks.
func (x *externalWatcher) triggerRead() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rereadNeeded = true
	x.readIfIdle()
}

// readIfIdle reads the due rows when none is pending. The caller holds the lock.
func (x *externalWatcher) readIfIdle() {
	if !x.reading && len(x.pendingRows) == 0 {
		x.reading = true
		x.m.runBackground(x.readDue)
	}
}

// readDue reads the due rows, starts polls for them, and sets the timer for the next one.
func (x *externalWatcher) readDue() {
	x.mu.Lock()
	x.rereadNeeded = false
	limit := externalsAtOnce + len(x.busy)
	x.mu.Unlock()
	rows, err := x.queryDue(limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading, x.mayHaveMore = false, err == nil && len(rows) == limit
	if x.rereadNeeded { // something changed since the read
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

// startPollers starts as many polls as the limit allows.
func (x *externalWatcher) startPollers() {
	for n := min(externalPollers-x.activePolls, len(x.pendingRows)); n > 0; n-- {
		x.activePolls++
		x.m.runBackground(x.pollPending)
	}
}

// pollPending polls pending rows until none is left. It skips rows of tasks that have moved to
// another member.
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

// enqueueNote queues the result of a poll to be written.
func (x *externalWatcher) enqueueNote(n persistence.ExternalNote) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, n)
	if !x.writing {
		x.writing = true
		x.m.runBackground(x.writeNotes)
	}
}

// writeNotes writes the queued results until none is left: more may come meanwhile.
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

// storeNotes writes results, with retries. It returns false when the member stops.
func (x *externalWatcher) storeNotes(notes []persistence.ExternalNote) bool {
	for {
		ctx, cancel := x.m.storeCall()
		err := x.m.store.NoteExternals(ctx, x.m.incarnation, notes)
		cancel()
		if errors.Is(err, persistence.ErrFenced) {
			return false // the next owners continue to poll
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

// releaseNoted allows pieces whose results are stored to be polled again at their next time.
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

// releaseRow allows a piece to be polled by the member that owns its task now.
func (x *externalWatcher) releaseRow(id persistence.ExternalID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.busy, id)
}

// armTimer sets the timer to a time, if it would fire later.
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

// addExternals adds the changes to rows of external work to the commit of the events that they
// follow from.
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

// recallsOf finds the external work of a task that cannot be read. It returns the effects that
// cancel the work.
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
