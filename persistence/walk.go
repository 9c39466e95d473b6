package persistence

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/troupe-engine/troupe/flow"
)

// journalWalk is one way of a walker through a task's journal. It begins at the checkpoint before
// what is asked for, and wherever nothing concerns the walker for a while, it goes on at the last
// checkpoint of that while: what a page of a long history costs depends on the page and on how
// large the task's state is, not on how long the history is.
type journalWalk struct {
	r           *Reader
	task        string
	plan        *flow.Plan
	marks       []int64 // rows with a checkpoint
	next        int     // the first of marks that is ahead
	at          int64   // the last row the walker knows
	w           flow.Walker
	eventBuffer []flow.Event // for those of a row
}

// Walk gives a task's journal to a walker, from before a row on until it is done. ErrNotFound when
// there is no such task, or none any more.
func (r *Reader) Walk(ctx context.Context, task string, from int64, w flow.Walker) error {
	return r.walkJournal(ctx, task, w, func(x *journalWalk) error { return x.beginAt(ctx, from) })
}

// Find is Walk for a walker that looks for one thing: it begins where that may be.
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

// beginLate goes to the last checkpoint until which nothing concerns the walker. What is looked for
// is more often near the end than near the beginning, so it looks from there, further back each
// time, and then halves.
func (x *journalWalk) beginLate(ctx context.Context) error {
	low, high := 0, len(x.marks) // before low nothing concerns it, from high on something does
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

// beginAt goes to the last checkpoint before a row. One that is of no use is passed over.
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

// markFrom is the first checkpoint at or behind a row.
func (x *journalWalk) markFrom(row int64) int {
	return sort.Search(len(x.marks), func(i int) bool { return x.marks[i] >= row })
}

// checkpointState is that of a checkpoint; nil when it cannot be used.
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

// nearby is how many parts are read before it looks further ahead: what belongs to a page is mostly
// near it.
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

// skipIdle goes to the last checkpoint until which nothing concerns the walker. It looks further
// ahead with each that is so, and then halves.
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

// firstRows is how many rows are read at first: a short page needs no more.
const firstRows = 64

// readOn reads the rows up to the next checkpoint, or to the end of the journal.
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
