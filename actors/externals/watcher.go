// Package externals polls and cancels the external work that tasks of this member wait for. A
// Watcher is a structure with a lock.
package externals

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Watcher polls the external work that tasks of this member's shards wait for. Such tasks and their
// work are rows, not memory. The store holds the time of each next poll, and one timer waits for
// the earliest. The watcher polls a few at once and writes the results together. Only an end loads
// the task. When a member ends, the next owner of the shard continues to poll.
type Watcher struct {
	cfg Config

	mu          sync.Mutex
	busy        map[persistence.ExternalID]bool // rows being polled, or with a result being written
	pendingRows []persistence.ExternalRow       // busy rows that no goroutine polls yet
	activePolls int                             // number of goroutines that poll
	notes       []persistence.ExternalNote      // results to be written

	reading, writing bool
	mayHaveMore      bool // the store may have more due rows
	rereadNeeded     bool // rows have changed since the last read
	timerAt          int64
	stopTimer        func() bool // stops the timer for timerAt
}

// externalsAtOnce is how many due rows one read returns. externalPollers is how many are polled at
// once. externalRescan is the pause between reads without a notice, because a notice may be lost.
const (
	externalsAtOnce = 100
	externalPollers = 50
	externalRescan  = 5 * time.Second
)

// Config configures a Watcher.
type Config struct {
	Store       Store
	Incarnation string
	Shards      Shards
	Now         func() int64 // the store's time in Unix milliseconds
	Work        *background.Work
	Outages     Outages
	Log         *slog.Logger
	// IsStopping reports whether the member stops.
	IsStopping func() bool
	Trackers   map[string]Tracker // by service
	// OffloadValue stores a large value of a task outside the store and returns its reference.
	OffloadValue func(ctx context.Context, task string, v json.RawMessage) (json.RawMessage, error)
	// SendOrder delivers an order to a task of this member and reports the task's answer.
	SendOrder func(o engine.Order, answered func(err error))
}

// Store is the part of the store that a Watcher needs.
type Store interface {
	NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error)
	NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error
}

// Outages receives the results of store calls.
type Outages interface {
	RecordCall(what, thing string, err error)
}

// Shards knows which tasks this member owns.
type Shards interface {
	OwnsTask(task string) bool
	OwnedShards() persistence.ShardSet
}

// Log messages about outages.
const (
	externalsNotRead    = "reading external work failed"
	externalsNotWritten = "writing the progress of external work failed"
)

// New creates the watcher of a member.
func New(cfg Config) *Watcher {
	return &Watcher{cfg: cfg, busy: map[persistence.ExternalID]bool{}}
}

// TriggerRead reads the due rows, unless enough are pending already. It never blocks.
func (x *Watcher) TriggerRead() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rereadNeeded = true
	x.readIfIdle()
}

// readIfIdle reads the due rows when none is pending. The caller holds the lock.
func (x *Watcher) readIfIdle() {
	if !x.reading && len(x.pendingRows) == 0 {
		x.reading = true
		x.cfg.Work.Run(x.readDue)
	}
}

// readDue reads the due rows, starts polls for them, and sets the timer for the next one.
func (x *Watcher) readDue() {
	x.mu.Lock()
	x.rereadNeeded = false
	limit := externalsAtOnce + len(x.busy)
	x.mu.Unlock()
	rows, err := x.queryDue(limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reading, x.mayHaveMore = false, err == nil && len(rows) == limit
	if x.rereadNeeded { // rows changed since the read
		defer x.readIfIdle()
	}
	x.armTimer(x.cfg.Now() + externalRescan.Milliseconds())
	for _, row := range rows {
		switch {
		case x.busy[row.Key()]:
			x.rereadNeeded = x.rereadNeeded || row.Recalled
		case row.NextAt > x.cfg.Now():
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

func (x *Watcher) queryDue(limit int) ([]persistence.ExternalRow, error) {
	shards := x.cfg.Shards.OwnedShards()
	if shards != nil && len(shards) == 0 || x.cfg.IsStopping() {
		return nil, nil
	}
	ctx, cancel := x.cfg.Work.StoreCall()
	defer cancel()
	rows, err := x.cfg.Store.NextExternals(ctx, shards, limit)
	x.cfg.Outages.RecordCall(externalsNotRead, "", err)
	return rows, err
}

// startPollers starts as many polls as the limit allows.
func (x *Watcher) startPollers() {
	for n := min(externalPollers-x.activePolls, len(x.pendingRows)); n > 0; n-- {
		x.activePolls++
		x.cfg.Work.Run(x.pollPending)
	}
}

// pollPending polls pending rows until none is left. It skips rows of tasks that have moved to
// another member.
func (x *Watcher) pollPending() {
	for {
		row, ok := x.takeRow()
		if !ok || !x.pollRow(row) {
			return
		}
	}
}

func (x *Watcher) takeRow() (row persistence.ExternalRow, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.pendingRows) > 0 && !x.cfg.IsStopping() {
		row, x.pendingRows = x.pendingRows[0], x.pendingRows[1:]
		if x.cfg.Shards.OwnsTask(row.Task) {
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
func (x *Watcher) enqueueNote(n persistence.ExternalNote) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, n)
	if !x.writing {
		x.writing = true
		x.cfg.Work.Run(x.writeNotes)
	}
}

// writeNotes writes the queued results, and those that arrive meanwhile, until none is left.
func (x *Watcher) writeNotes() {
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
func (x *Watcher) storeNotes(notes []persistence.ExternalNote) bool {
	for {
		ctx, cancel := x.cfg.Work.StoreCall()
		err := x.cfg.Store.NoteExternals(ctx, x.cfg.Incarnation, notes)
		cancel()
		if errors.Is(err, persistence.ErrFenced) {
			return false // the next owners continue to poll
		}
		x.cfg.Outages.RecordCall(externalsNotWritten, "", err)
		if err == nil {
			x.releaseNoted(notes)
			return true
		}
		if !x.cfg.Work.Sleep(time.Second) {
			return false
		}
	}
}

// releaseNoted allows the next poll of rows whose results are stored.
func (x *Watcher) releaseNoted(notes []persistence.ExternalNote) {
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
		x.TriggerRead()
	}
}

// releaseRow allows further polls of a row, for example by the next owner of its task.
func (x *Watcher) releaseRow(id persistence.ExternalID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.busy, id)
}

// armTimer sets the timer to a time, unless it fires earlier anyway.
func (x *Watcher) armTimer(at int64) {
	if x.timerAt != 0 && x.timerAt <= at || x.cfg.Work.HasEnded() {
		return
	}
	if x.stopTimer != nil {
		x.stopTimer()
	}
	x.timerAt = at
	x.stopTimer = x.cfg.Work.After(flow.Milliseconds(at-x.cfg.Now())+time.Millisecond, func() {
		x.mu.Lock()
		if x.timerAt == at {
			x.timerAt = 0
		}
		x.mu.Unlock()
		x.TriggerRead()
	})
}
