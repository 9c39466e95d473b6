package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Reader reads tasks by folding their journals. It reads from the store and never asks the task's
// owner, so its results are exact on every member.
type Reader struct {
	store Store
	plans planCache
	lists unitLists
}

// NewReader returns a Reader of a store.
func NewReader(store Store, limits flow.Limits) *Reader {
	return &Reader{store: store, plans: newPlans(store, limits), lists: unitLists{kept: lru.New[*flow.UnitList](maxListBytes)}}
}

// Keep sets the source of the contents that references in values stand for. Call it directly after
// NewReader.
func (r *Reader) Keep(contents flow.Contents) { r.plans.contents = contents }

// Clear drops everything cached about tasks and versions, because the store went back in time.
func (r *Reader) Clear() {
	r.plans.clear()
	r.lists.clear()
}

// View is the current state of a task.
type View struct {
	TaskRow
	State *flow.State // state that only this view uses
	Seq   int64       // sequence number of the last journal row applied

	Unreadable error // reason why State has only the data of the row; nil if State is complete
}

// View returns one task, or ErrNotFound.
func (r *Reader) View(ctx context.Context, task string) (*View, error) {
	var views []*View
	err := r.readMeasured(ctx, task, func() (err error) {
		views, err = r.loadViews(ctx, []string{task})
		return err
	})
	if err != nil {
		return nil, err
	}
	switch v := views[0]; {
	case v == nil:
		return nil, ErrNotFound
	case !v.Readable():
		return nil, newUnreadableError(task, v.Unreadable)
	default:
		return v, nil
	}
}

// loadViews reads several tasks at once. The view is nil for an unknown task; for an unreadable
// task, it has Unreadable set.
func (r *Reader) loadViews(ctx context.Context, tasks []string) ([]*View, error) {
	records, err := r.store.Load(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	views := make([]*View, len(records))
	for i, rec := range records {
		if rec == nil {
			continue
		}
		view, err := r.Fold(ctx, rec)
		switch {
		case errors.Is(err, ErrNotFound): // deleted meanwhile
		case errors.Is(err, ErrUnreadable):
			views[i] = r.outlineView(ctx, rec, err)
		case err != nil:
			return nil, err
		default:
			views[i] = view
		}
	}
	return views, nil
}

// Fold builds a view from a record. It returns ErrNotFound if the task has no journal, because the
// task is being deleted.
func (r *Reader) Fold(ctx context.Context, rec *Record) (*View, error) {
	plan, err := r.Plan(ctx, rec.VersionID)
	if flow.ErrorKindOf(err) == flow.NotFound {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if err != nil {
		return nil, err
	}
	v := &View{TaskRow: rec.TaskRow, State: flow.NewState(rec.ID, plan)}
	if rec.Snapshot != nil {
		s, known := flow.DecodeSnapshot(rec.Snapshot, plan)
		if !known {
			return r.foldAll(ctx, v)
		}
		v.State, v.Seq = s, rec.SnapshotSeq
	}
	if err := v.foldRows(rec.Rows); err != nil {
		return nil, err
	}
	return v.checkBegun()
}

// rooms holds buffers for the decoded events of a row, which would otherwise be most allocations of
// a fold.
var rooms = sync.Pool{New: func() any { return new([8]flow.Event) }}

func (v *View) foldRows(rows []Row) error {
	room := rooms.Get().(*[8]flow.Event)
	defer func() {
		clear(room[:])
		rooms.Put(room)
	}()
	for _, row := range rows {
		events, err := flow.DecodeEventsTo(room[:0], row.Events)
		if err != nil {
			return fmt.Errorf("%w: journal row %d: %w", ErrUnreadable, row.Seq, err)
		}
		for i := range events {
			flow.Evolve(v.State, &events[i])
		}
		if v.State.Lost() != nil {
			return lostContent(v.State)
		}
		v.Seq = row.Seq
	}
	return nil
}

// lostContent returns the error of a state that depends on a missing content. The error is
// ErrUnreadable only if the content is permanently missing.
func lostContent(s *flow.State) error {
	err := s.Lost()
	if errors.Is(err, flow.ErrNoContent) {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}

// checkBegun returns the view if the task has a journal, and ErrNotFound otherwise.
func (v *View) checkBegun() (*View, error) {
	switch {
	case v.State.Root == nil:
		return nil, ErrNotFound
	case v.State.Lost() != nil:
		return nil, lostContent(v.State)
	}
	return v, nil
}

// foldAll builds the view from the whole journal, because the snapshot cannot be used.
func (r *Reader) foldAll(ctx context.Context, v *View) (*View, error) {
	err := r.eachRow(ctx, v.ID, 0, func(row Row, events []flow.Event) error {
		for i := range events {
			flow.Evolve(v.State, &events[i])
		}
		v.Seq = row.Seq
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v.checkBegun()
}

// History folds a task's whole journal into its history.
func (r *Reader) History(ctx context.Context, task string) (*flow.History, error) {
	var h *flow.History
	err := r.Replay(ctx, task, func(plan *flow.Plan) Replayer {
		h = flow.NewHistory(task, plan)
		return h
	})
	return h, err
}

// Began returns when a task entered its first step; 0 if it has not. That event is near the
// beginning of the journal.
func (r *Reader) Began(ctx context.Context, task string) (int64, error) {
	first := Part{Rows: 8, Bytes: 1 << 20}
	for after := int64(0); ; {
		rows, err := r.store.Rows(ctx, task, after, first)
		if err != nil {
			return 0, fmt.Errorf("reading the beginning of task %s: %w", task, err)
		}
		for _, row := range rows {
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				return 0, newUnreadableError(task, fmt.Errorf("%w: journal row %d: %w", ErrUnreadable, row.Seq, err))
			}
			for i := range events {
				if events[i].Type == flow.StepEntered {
					return events[i].At, nil
				}
			}
			after = row.Seq
		}
		if !first.Full(rows) {
			return 0, nil
		}
	}
}

// Replayer receives a journal event by event, from the first on.
type Replayer interface{ Apply(*flow.Event) }

// Replay passes a task's whole journal to the Replayer that begin returns for its plan. It returns
// ErrNotFound if the task does not exist or is being deleted.
func (r *Reader) Replay(ctx context.Context, task string, begin func(*flow.Plan) Replayer) error {
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return err
	}
	plan, err := r.Plan(ctx, row.VersionID)
	if err != nil {
		return err
	}
	to, read := begin(plan), int64(0)
	err = r.eachRow(ctx, task, 0, func(row Row, events []flow.Event) error {
		read += int64(len(row.Events))
		if err := takeHistoryMemory(ctx, task, read); err != nil {
			return err
		}
		for i := range events {
			to.Apply(&events[i])
		}
		return nil
	})
	if err == nil && read == 0 {
		return ErrNotFound
	}
	return err
}

// pageRows is the number of journal rows in one read, if they are small.
const pageRows = 1000

var page = Part{Rows: pageRows, Bytes: 4 << 20}

// eachRow calls visit for the rows after a sequence number, until visit returns an error.
func (r *Reader) eachRow(ctx context.Context, task string, after int64, visit func(Row, []flow.Event) error) error {
	for {
		rows, err := r.store.Rows(ctx, task, after, page)
		if err != nil {
			return fmt.Errorf("reading the journal of task %s: %w", task, err)
		}
		for _, row := range rows {
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				return newUnreadableError(task, fmt.Errorf("%w: journal row %d: %w", ErrUnreadable, row.Seq, err))
			}
			if err := visit(row, events); err != nil {
				return err
			}
			after = row.Seq
		}
		if !page.Full(rows) {
			return nil
		}
	}
}

// Permits returns the permits that a task waits for or has, with the current number of rows before
// each waiting one.
func (r *Reader) Permits(ctx context.Context, task string) ([]PermitRow, error) {
	rows, err := r.store.PermitsOf(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of task %s: %w", task, err)
	}
	return rows, nil
}
