package persistence

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/troupe-engine/troupe/flow"
)

// journalWalk is one pass of a walker through a task's journal. It begins at the checkpoint before
// the requested position, and skips checkpoints while the walker is idle. So the cost of a page
// does not depend on the length of the history.
type journalWalk struct {
	r           *Reader
	task        string
	plan        *flow.Plan
	marks       []int64 // sequence numbers of the rows with a checkpoint
	next        int     // index of the next mark
	at          int64   // sequence number of the last applied row
	w           flow.Walker
	eventBuffer []flow.Event // reused for the events of a row
}

// Walk passes a task's journal to a walker, starting before a row, until the walker is done. It
// returns ErrNotFound if the task does not exist or is being deleted.
func (r *Reader) Walk(ctx context.Context, task string, from int64, w flow.Walker) error {
	return r.walkJournal(ctx, task, w, func(x *journalWalk) error { return x.beginAt(ctx, from) })
}

// Find passes a task's journal to a walker that looks for one event. It starts at the last
// checkpoint before which the walker is idle.
func (r *Reader) Find(ctx context.Context, task string, w flow.Walker) error {
	return r.walkJournal(ctx, task, w, func(x *journalWalk) error { return x.beginLate(ctx) })
}

func (r *Reader) walkJournal(ctx context.Context, task string, w flow.Walker, begin func(*journalWalk) error) error {
	row, err := r.store.Task(ctx, task)
	if err != nil {
		return err
	}
	plan, err := r.Plan(ctx, row.VersionID)
	if err != nil {
		return err
	}
	marks, err := r.store.Checkpoints(ctx, task)
	if err != nil {
		return err
	}
	x := &journalWalk{r: r, task: task, plan: plan, marks: marks, w: w}
	return r.readMeasured(ctx, task, func() error {
		if err := begin(x); err != nil {
			return err
		}
		return x.runWalk(ctx)
	})
}

// beginLate starts at the last checkpoint before which the walker is idle. The search doubles its
// steps from the end and then halves them, because the wanted event is usually near the end.
func (x *journalWalk) beginLate(ctx context.Context) error {
	low, high := 0, len(x.marks) // the walker is idle before low, and not idle from high on
	var found *flow.State
	probe := func(mark int) error {
		s, err := x.checkpointState(ctx, mark)
		switch {
		case err != nil:
			return err
		case s != nil && x.w.Idle(s):
			low, found = mark+1, s
		default:
			high = mark
		}
		return nil
	}
	for step := 1; low < high && found == nil; step *= 2 {
		if err := probe(max(len(x.marks)-step, 0)); err != nil {
			return err
		}
	}
	for low < high {
		if err := probe((low + high) / 2); err != nil {
			return err
		}
	}
	if found == nil {
		return x.beginAt(ctx, 0)
	}
	x.next, x.at = low, x.marks[low-1]
	x.w.From(found)
	return nil
}

// beginAt starts at the last usable checkpoint before a row.
func (x *journalWalk) beginAt(ctx context.Context, from int64) error {
	for x.next = x.markFrom(from); x.next > 0; x.next-- {
		s, err := x.checkpointState(ctx, x.next-1)
		if err != nil {
			return err
		}
		if s != nil {
			x.at = x.marks[x.next-1]
			x.w.From(s)
			return nil
		}
	}
	x.w.From(flow.NewState(x.task, x.plan))
	return nil
}

// markFrom returns the index of the first checkpoint at or after a row.
func (x *journalWalk) markFrom(row int64) int {
	return sort.Search(len(x.marks), func(i int) bool { return x.marks[i] >= row })
}

// checkpointState returns the state of a checkpoint, or nil if it cannot be used.
func (x *journalWalk) checkpointState(ctx context.Context, mark int) (*flow.State, error) {
	b, err := x.r.store.Checkpoint(ctx, x.task, x.marks[mark])
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, ok := flow.DecodeSnapshot(b, x.plan)
	if !ok {
		return nil, nil
	}
	return s, nil
}

// nearby is the number of parts to read before skipping ahead, because the rows of a page are
// usually near each other.
const nearby = 2

func (x *journalWalk) runWalk(ctx context.Context) error {
	for parts := 0; !x.w.Done(); parts++ {
		if parts >= nearby {
			if err := x.skipIdle(ctx); err != nil {
				return err
			}
		}
		end, err := x.readOn(ctx)
		if err != nil || end {
			return err
		}
		x.next++
	}
	return nil
}

// skipIdle moves to the last checkpoint before which the walker is idle. It doubles the distance
// after each idle checkpoint and then halves it.
func (x *journalWalk) skipIdle(ctx context.Context) error {
	if x.w.Busy() {
		return nil
	}
	var found *flow.State
	idle := func(mark int) (bool, error) {
		s, err := x.checkpointState(ctx, mark)
		if err != nil || s == nil || !x.w.Idle(s) {
			return false, err
		}
		found, x.next, x.at = s, mark+1, x.marks[mark]
		return true, nil
	}
	beyond := len(x.marks)
	for step := 1; x.next-1+step < beyond; step *= 2 {
		mark := x.next - 1 + step
		ok, err := idle(mark)
		if err != nil {
			return err
		}
		if !ok {
			beyond = mark
		}
	}
	for x.next < beyond {
		ok, err := idle((x.next + beyond) / 2)
		if err != nil {
			return err
		}
		if !ok {
			beyond = (x.next + beyond) / 2
		}
	}
	if found != nil {
		x.w.From(found)
	}
	return nil
}

// firstRows is the number of rows in the first read, which is enough for a short page.
const firstRows = 64

// readOn reads the rows up to the next checkpoint or the end of the journal.
func (x *journalWalk) readOn(ctx context.Context) (end bool, err error) {
	for n := firstRows; ; n = min(4*n, pageRows) {
		part := Part{Rows: n, Bytes: page.Bytes}
		if x.next < len(x.marks) {
			part.Rows = int(min(int64(n), x.marks[x.next]-x.at))
		}
		rows, err := x.r.store.Rows(ctx, x.task, x.at, part)
		if err != nil {
			return false, fmt.Errorf("reading the journal of task %s: %w", x.task, err)
		}
		for i := range rows {
			if err := x.applyRow(&rows[i]); err != nil {
				return false, err
			}
			if x.w.Done() {
				return true, nil
			}
		}
		switch {
		case x.next < len(x.marks) && x.at == x.marks[x.next]:
			return false, nil
		case len(rows) == 0 && x.at == 0:
			return true, ErrNotFound
		case !part.Full(rows):
			return true, nil
		}
	}
}

func (x *journalWalk) applyRow(row *Row) error {
	events, err := flow.DecodeEventsTo(x.eventBuffer, row.Events)
	if err != nil {
		return newUnreadableError(x.task, fmt.Errorf("%w: journal row %d: %w", ErrUnreadable, row.Seq, err))
	}
	for i := range events {
		x.w.Apply(&events[i], flow.Place{Seq: row.Seq, Index: i})
	}
	x.at, x.eventBuffer = row.Seq, events
	return nil
}
