package actors

import (
	"context"
	"errors"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// loader reads tasks from the store in batches: while one batch is read, the next one gathers.
type loader struct {
	m       *Member
	mu      sync.Mutex
	waiting []loadRequest
	running int
}

type loadRequest struct {
	task  string
	reply func(loadResult)
}

// loadResult is a task as stored. A nil view without an error means that the task does not exist.
type loadResult struct {
	gen          int
	view         *persistence.View
	journal      int  // bytes of the rows after the snapshot
	snapshotSize int  // bytes of the snapshot
	begunApart   bool // its only row was stored by a caller, not by a member
	resting      bool
	err          error
	record       *persistence.Record // record of a task that cannot be read
}

// storeReadError is the error when the store did not return a task. The task itself is all right.
type storeReadError struct{ error }

func (e storeReadError) Unwrap() error { return e.error }

// loadBatch is how many tasks one read returns, and loaders how many reads run at once.
const (
	loadBatch = 200
	loaders   = 4
)

func (l *loader) loadTask(task string, reply func(loadResult)) {
	// no task has such an id, and it could make the store refuse the whole batch
	if !flow.IsText(task) {
		reply(loadResult{})
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, loadRequest{task, reply})
	if l.running < loaders {
		l.running++
		l.m.runBackground(l.readBatches)
	}
}

func (l *loader) readBatches() {
	for {
		l.mu.Lock()
		n := min(len(l.waiting), loadBatch)
		if n == 0 {
			l.running--
			l.mu.Unlock()
			return
		}
		batch := append([]loadRequest(nil), l.waiting[:n]...)
		l.waiting = l.waiting[n:]
		l.mu.Unlock()
		l.readBatch(batch)
	}
}

func (l *loader) readBatch(batch []loadRequest) {
	ids := make([]string, len(batch))
	for i, b := range batch {
		ids[i] = b.task
	}
	ctx, cancel := l.m.storeCall()
	defer cancel()
	records, err := l.m.store.Load(ctx, ids)
	l.m.recordStoreCall(notLoaded, "", err)
	if err != nil {
		err = storeReadError{err}
	}
	for i, b := range batch {
		switch {
		case err != nil:
			b.reply(loadResult{err: err})
		case l.m.cfg.Payloads != nil: // folding may need values that are not in memory
			l.m.runBackground(func() { l.foldInBackground(b, records[i]) })
		default:
			b.reply(l.foldRecord(ctx, records[i]))
		}
	}
}

func (l *loader) foldInBackground(b loadRequest, rec *persistence.Record) {
	ctx, cancel := l.m.storeCall()
	defer cancel()
	b.reply(l.foldRecord(ctx, rec))
}

func (l *loader) foldRecord(ctx context.Context, rec *persistence.Record) loadResult {
	if rec == nil {
		return loadResult{}
	}
	view, err := l.m.reader.Fold(ctx, rec)
	if errors.Is(err, persistence.ErrNotFound) {
		return loadResult{} // the task is being deleted
	}
	if err != nil {
		return loadResult{err: err, record: rec}
	}
	out := loadResult{view: view, snapshotSize: len(rec.Snapshot), resting: rec.Resting}
	for _, row := range rec.Rows {
		out.journal += len(row.Events)
	}
	if view.Seq == 1 {
		out.begunApart, out.err = l.begunApart(ctx, rec, view.State)
	}
	return out
}

// begunApart reports whether the only row of a task was stored by a caller of Begin. The row may
// exist in a snapshot only.
func (l *loader) begunApart(ctx context.Context, rec *persistence.Record, s *flow.State) (bool, error) {
	if len(rec.Rows) > 0 {
		return s.BegunApart(), nil
	}
	rows, err := l.m.store.Rows(ctx, rec.ID, 0, persistence.Part{Rows: 1})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	events, err := flow.DecodeEvents(rows[0].Events)
	return err == nil && len(events) > 0 && events[0].BegunApart(), err
}
