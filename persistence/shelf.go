package persistence

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// shelf keeps the histories of long tasks for a while after somebody has read them: who reads one page wants the
// next, and must not fold the whole journal for each.
type shelf struct {
	mu   sync.Mutex
	kept []*reading // in the order of their last use
}

// A history is kept when its journal is longer than a page of rows, with few others and for a short time.
const (
	keptReadings = 4
	keptBytes    = 16 << 20
	keptFor      = 30 * time.Second
)

// reading is how far a journal has been folded.
type reading struct {
	task, version string
	created       int64
	forget        *time.Timer // guarded by the shelf

	mu      sync.Mutex // guards what is below: of those who have taken it from the shelf one folds, the others wait
	history *flow.History
	seq     int64 // of the last row in the history
	bytes   int
}

// Runs tells the history of a task as node runs.
func (r *Reader) Runs(ctx context.Context, task string) ([]flow.NodeRun, error) {
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return nil, err
	}
	reading := r.shelf.take(row)
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if err := r.readOn(ctx, reading); err != nil {
		return nil, err
	}
	r.shelf.put(reading)
	return slices.Clone(reading.history.Runs), nil
}

// readOn folds the rows that were written since the last time.
func (r *Reader) readOn(ctx context.Context, to *reading) error {
	if to.history == nil {
		plan, err := r.Plan(ctx, to.version)
		if err != nil {
			return err
		}
		to.history = flow.NewHistory(to.task, plan)
	}
	fold := apply(to.history)
	err := r.eachRow(ctx, to.task, to.seq, func(row Row, events []flow.Event) {
		fold(row, events)
		to.seq = row.Seq
		to.bytes += len(row.Events)
	})
	if err == nil && to.seq == 0 {
		return ErrNotFound // it was deleted meanwhile
	}
	return err
}

// take finds the reading of a task, or begins one. That of a deleted task is not that of its successor.
func (s *shelf) take(row *TaskRow) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.task == row.ID && k.version == row.VersionID && k.created == row.CreatedAt {
			return k
		}
	}
	return &reading{task: row.ID, version: row.VersionID, created: row.CreatedAt}
}

// put keeps a reading that was worth the work and is not too large, until nobody has wanted it for a while.
func (s *shelf) put(r *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(func(k *reading) bool { return k.task == r.task })
	if r.seq <= pageRows || r.bytes > keptBytes {
		return
	}
	if len(s.kept) == keptReadings {
		oldest := s.kept[0]
		s.drop(func(k *reading) bool { return k == oldest })
	}
	s.kept = append(s.kept, r)
	r.forget = time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(func(k *reading) bool { return k == r })
	})
}

func (s *shelf) drop(which func(*reading) bool) {
	s.kept = slices.DeleteFunc(s.kept, func(k *reading) bool {
		if which(k) {
			k.forget.Stop()
			return true
		}
		return false
	})
}
