package actors

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// externals looks after the work outside that tasks of this member's shards wait for. Such a task is a row, and not in memory; so is each piece of
// its work. When which of them is to be looked at is in the store, and here is one timer for the earliest. A few are looked at at once; what that
// came to is written together, and only an end brings a task into memory. Nothing is lost with a member: whoever gets the shard looks on.
type externals struct {
	m      *Member
	mu     sync.Mutex
	busy   map[persistence.ExternalID]bool // being looked at, or what that came to is being written
	line   []persistence.ExternalRow       // those of them that nobody is at
	active int                             // how many are being looked at
	notes  []persistence.ExternalNote      // to be written

	reading, writing bool
	more             bool // there may be others that are due
	again            bool // something has changed since they were read
	at               int64
	stop             func() bool // of the timer for that time
}

// How many are read at once, and looked at at once; how often they are read in any case, because word of them may have been lost.
const (
	externalsAtOnce = 100
	externalLookers = 50
	lookForExternal = 5 * time.Second
)

func newExternals(m *Member) *externals {
	return &externals{m: m, busy: map[persistence.ExternalID]bool{}}
}

// look reads what is due, unless there is enough to look at already. It never blocks.
func (x *externals) look() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.again = true
	x.readOn()
}

// readOn reads what is due when there is nothing to look at. The lock is held.
func (x *externals) readOn() {
	if !x.reading && len(x.line) == 0 {
		x.reading = true
		x.m.background(x.read)
	}
}

// read has those looked at that are due, and sets the timer for the one that is next.
func (x *externals) read() {
	x.mu.Lock()
	x.again = false
	limit := externalsAtOnce + len(x.busy)
	x.mu.Unlock()
	rows, err := x.next(limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading, x.more = false, err == nil && len(rows) == limit
	if x.again { // since they were read
		defer x.readOn()
	}
	x.set(x.m.now() + lookForExternal.Milliseconds())
	for _, row := range rows {
		switch {
		case x.busy[row.Key()]:
			x.again = x.again || row.Recalled
		case row.NextAt > x.m.now():
			x.more = false
			x.set(row.NextAt)
			x.begin()
			return
		default:
			x.busy[row.Key()] = true
			x.line = append(x.line, row)
		}
	}
	x.begin()
}

func (x *externals) next(limit int) ([]persistence.ExternalRow, error) {
	shards := x.m.owned.shards()
	if shards != nil && len(shards) == 0 || x.m.stopping.Load() {
		return nil, nil
	}
	ctx, cancel := x.m.storeCall()
	defer cancel()
	rows, err := x.m.store.NextExternals(ctx, shards, limit)
	x.m.tried(externalsNotRead, "", err)
	return rows, err
}

// begin has as many looked at at once as may be.
func (x *externals) begin() {
	for n := min(externalLookers-x.active, len(x.line)); n > 0; n-- {
		x.active++
		x.m.background(x.run)
	}
}

// run looks at those in line until there is none. One of another member's task meanwhile is left to that one.
func (x *externals) run() {
	for {
		row, ok := x.take()
		if !ok || !x.lookAt(row) {
			return
		}
	}
}

func (x *externals) take() (row persistence.ExternalRow, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.line) > 0 && !x.m.stopping.Load() {
		row, x.line = x.line[0], x.line[1:]
		if x.m.owned.owns(row.Task) {
			return row, true
		}
		delete(x.busy, row.Key())
	}
	x.active--
	if x.more || x.again {
		x.readOn()
	}
	return row, false
}

// note has written what looking at one came to.
func (x *externals) note(n persistence.ExternalNote) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, n)
	if !x.writing {
		x.writing = true
		x.m.background(x.write)
	}
}

// write writes what there is to note, again and again: more comes meanwhile.
func (x *externals) write() {
	for {
		x.mu.Lock()
		notes := x.notes
		x.notes = nil
		x.writing = len(notes) > 0
		x.mu.Unlock()
		if len(notes) == 0 || !x.written(notes) {
			return
		}
	}
}

// written is false when the member goes.
func (x *externals) written(notes []persistence.ExternalNote) bool {
	for {
		ctx, cancel := x.m.storeCall()
		err := x.m.store.NoteExternals(ctx, x.m.incarnation, notes)
		cancel()
		if errors.Is(err, persistence.ErrFenced) {
			return false // others look on
		}
		x.m.tried(externalsNotWritten, "", err)
		if err == nil {
			x.noted(notes)
			return true
		}
		if !x.m.pause(time.Second) {
			return false
		}
	}
}

// noted lets those be looked at again when it is their time.
func (x *externals) noted(notes []persistence.ExternalNote) {
	x.mu.Lock()
	for i := range notes {
		delete(x.busy, notes[i].ExternalID)
		if !notes[i].Gone {
			x.set(notes[i].NextAt)
		}
	}
	again := x.again
	x.mu.Unlock()
	if again {
		x.look()
	}
}

// leave lets one be looked at by whoever has its task now.
func (x *externals) leave(id persistence.ExternalID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.busy, id)
}

// set has the timer ring at a time, if it would ring later.
func (x *externals) set(at int64) {
	if x.at != 0 && x.at <= at || x.m.ctx.Err() != nil {
		return
	}
	if x.stop != nil {
		x.stop()
	}
	x.at = at
	x.stop = x.m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-x.m.now())+time.Millisecond, func() {
		x.mu.Lock()
		if x.at == at {
			x.at = 0
		}
		x.mu.Unlock()
		x.look()
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
