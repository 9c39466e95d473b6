package journal

import (
	"context"
	"errors"
	"sync"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Loader reads tasks from the store in batches. While one batch is read, the next one gathers.
type Loader struct {
	cfg LoaderConfig

	mu      sync.Mutex
	waiting []loadRequest
	running int
}

// LoaderConfig configures a loader.
type LoaderConfig struct {
	Store   LoadStore
	Fold    func(ctx context.Context, rec *persistence.Record) (*persistence.View, error)
	Work    *background.Work
	Outages Outages
	// FoldsSlowly reports whether a fold may wait for values outside the store.
	FoldsSlowly bool
}

// LoadStore is the part of the store that a loader needs.
type LoadStore interface {
	Load(ctx context.Context, tasks []string) ([]*persistence.Record, error)
	Rows(ctx context.Context, task string, after int64, part persistence.Part) ([]persistence.Row, error)
}

// NewLoader creates a loader.
func NewLoader(cfg LoaderConfig) *Loader { return &Loader{cfg: cfg} }

// notLoaded is the log message about an outage.
const notLoaded = "loading tasks failed"

type loadRequest struct {
	task  string
	reply func(Loaded)
}

// Loaded is the result of a load. A nil View without an error means that the task does not exist.
type Loaded struct {
	Gen          int
	View         *persistence.View
	Journal      int  // bytes of the rows after the snapshot
	SnapshotSize int  // bytes of the snapshot
	BegunApart   bool // Begin stored the only row, without a member
	Resting      bool
	Err          error
	Record       *persistence.Record // record of the task if it cannot be read
}

// StoreReadError is the error when a read from the store failed. The task itself may be fine.
type StoreReadError struct{ Err error }

// Error returns the text of the cause.
func (e StoreReadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e StoreReadError) Unwrap() error { return e.Err }

// loadBatch is how many tasks one read returns. loaders is how many reads run at once.
const (
	loadBatch = 200
	loaders   = 4
)

// Load reads a task. It calls reply with the result, in any goroutine.
func (l *Loader) Load(task string, reply func(Loaded)) {
	// such an id cannot exist, and could make the store refuse the whole batch
	if !flow.IsText(task) {
		reply(Loaded{})
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, loadRequest{task, reply})
	if l.running < loaders {
		l.running++
		l.cfg.Work.Run(l.readBatches)
	}
}

func (l *Loader) readBatches() {
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

func (l *Loader) readBatch(batch []loadRequest) {
	ids := make([]string, len(batch))
	for i, b := range batch {
		ids[i] = b.task
	}
	ctx, cancel := l.cfg.Work.StoreCall()
	defer cancel()
	records, err := l.cfg.Store.Load(ctx, ids)
	l.cfg.Outages.RecordCall(notLoaded, "", err)
	if err != nil {
		err = StoreReadError{err}
	}
	for i, b := range batch {
		switch {
		case err != nil:
			b.reply(Loaded{Err: err})
		case l.cfg.FoldsSlowly: // the fold may wait for values that are not in memory
			l.cfg.Work.Run(func() { l.foldInBackground(b, records[i]) })
		default:
			b.reply(l.foldRecord(ctx, records[i]))
		}
	}
}

func (l *Loader) foldInBackground(b loadRequest, rec *persistence.Record) {
	ctx, cancel := l.cfg.Work.StoreCall()
	defer cancel()
	b.reply(l.foldRecord(ctx, rec))
}

func (l *Loader) foldRecord(ctx context.Context, rec *persistence.Record) Loaded {
	if rec == nil {
		return Loaded{}
	}
	view, err := l.cfg.Fold(ctx, rec)
	if errors.Is(err, persistence.ErrNotFound) {
		return Loaded{} // the task is being deleted
	}
	if err != nil {
		return Loaded{Err: err, Record: rec}
	}
	out := Loaded{View: view, SnapshotSize: len(rec.Snapshot), Resting: rec.Resting}
	for _, row := range rec.Rows {
		out.Journal += len(row.Events)
	}
	if view.Seq == 1 {
		out.BegunApart, out.Err = l.begunApart(ctx, rec, view.State)
	}
	return out
}

// begunApart reports whether Begin, and not a member, stored the only row of a task. If the
// snapshot replaced the row in rec, begunApart reads the row from the store.
func (l *Loader) begunApart(ctx context.Context, rec *persistence.Record, s *flow.State) (bool, error) {
	if len(rec.Rows) > 0 {
		return s.BegunApart(), nil
	}
	rows, err := l.cfg.Store.Rows(ctx, rec.ID, 0, persistence.Part{Rows: 1})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	events, err := flow.DecodeEvents(rows[0].Events)
	return err == nil && len(events) > 0 && events[0].BegunApart(), err
}
