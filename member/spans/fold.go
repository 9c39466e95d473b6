package spans

import (
	"cmp"
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

// spanBuilder builds spans from rows.
type spanBuilder struct {
	store    persistence.Store
	memory   taskMemory
	versions map[string]int // version numbers by version id
}

// foldRows builds spans from rows in the order in which they were stored. It returns when the
// Teller is closed.
func (t *Teller) foldRows() {
	defer close(t.folded)
	f := &spanBuilder{store: t.opts.Store, memory: newMemory(), versions: map[string]int{}}
	for row, ok := t.nextRow(); ok && t.ctx.Err() == nil; row, ok = t.nextRow() {
		t.bytes.Add(-int64(len(row.Events)))
		k, err := f.followRow(t.ctx, &row)
		if err != nil { // another try with each row would delay all other tasks
			k = &followedTask{}
			t.opts.Logger.Debug("exporting spans of a task stopped", "task", row.Task, "row", row.Seq, "error", err)
		}
		if k == nil {
			continue
		}
		t.emitSpans(k, &row)
		if row.Ended {
			f.memory.forgetEnded(row.Task)
		} else {
			f.memory.keepTask(row.Task, k)
		}
	}
}

// emitSpans queues the spans that a row has completed.
func (t *Teller) emitSpans(k *followedTask, row *actors.StoredRow) {
	if k.trace == nil {
		t.dropped.Inc()
		return
	}
	for _, s := range k.trace.Take() {
		t.enqueueSpan(Span{Span: s, Task: row.Task, Flow: k.flow, Version: k.version})
	}
	k.trace.Follow(nil)
}

// nextRow returns the next row. It returns false if the Teller is closed and the queue is empty.
func (t *Teller) nextRow() (row actors.StoredRow, ok bool) {
	select {
	case row = <-t.rows:
		return row, true
	case <-t.done:
	}
	select {
	case row = <-t.rows:
		return row, true
	default:
		return row, false
	}
}

// followRow applies the journal of a task up to a row. It returns nil if the task is exported only
// at its end.
func (f *spanBuilder) followRow(ctx context.Context, row *actors.StoredRow) (*followedTask, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := f.memory.findTask(row.Task)
	if k == nil {
		told, forgotten := f.memory.forgottenAt(row.Task)
		if forgotten && !row.Ended {
			return nil, nil
		}
		var err error
		if k, err = f.followFromStart(ctx, row, told); err != nil {
			return nil, err
		}
	}
	if k.trace == nil || row.Seq <= k.seq { // the row may have been read already
		return k, nil
	}
	k.trace.Follow(row.Plan)
	if row.Seq > k.seq+1 || row.Events == nil {
		return k, f.readJournal(ctx, row.Task, k, row.Seq)
	}
	return k, k.addEvents(row.Seq, row.Events)
}

// followFromStart reads the journal of a task that is not in memory from its first row. Spans up to
// row told were exported before and are not repeated.
func (f *spanBuilder) followFromStart(ctx context.Context, row *actors.StoredRow, told int64) (*followedTask, error) {
	k := &followedTask{trace: trace.New(row.Task, row.Plan),
		flow: cmp.Or(row.Plan.FlowSlug, row.Plan.FlowID), version: f.numberOf(ctx, row.Version)}
	until := row.Seq - 1
	if told > 0 {
		until = told
	}
	if err := f.readJournal(ctx, row.Task, k, until); err != nil {
		return nil, err
	}
	switch {
	case told > 0:
		k.trace.Take()
	case !row.Whole:
		k.trace.Pass()
	}
	return k, nil
}

func (k *followedTask) addEvents(seq int64, row []byte) error {
	events, err := flow.DecodeEvents(row)
	if err != nil {
		return err
	}
	for i := range events {
		k.trace.Add(&events[i])
	}
	k.seq = seq
	return nil
}

// journalPart limits how much of a journal one read returns.
var journalPart = persistence.Part{Rows: 1000, Bytes: 1 << 20}

// readJournal applies rows of the journal in the store, up to the given row.
func (f *spanBuilder) readJournal(ctx context.Context, task string, k *followedTask, until int64) error {
	for k.seq < until {
		rows, err := f.store.Rows(ctx, task, k.seq, journalPart)
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		for _, r := range rows {
			if r.Seq > until {
				return nil
			}
			if err := k.addEvents(r.Seq, r.Events); err != nil {
				return err
			}
		}
		if !journalPart.Full(rows) {
			return nil
		}
	}
	return nil
}

// maxVersions is the maximum number of cached version numbers.
const maxVersions = 1000

// numberOf returns the number of a version. It returns 0 if the version cannot be read, and the
// export continues.
func (f *spanBuilder) numberOf(ctx context.Context, version string) int {
	if n, ok := f.versions[version]; ok {
		return n
	}
	v, err := f.store.Version(ctx, version)
	if err != nil {
		return 0
	}
	if len(f.versions) >= maxVersions {
		clear(f.versions)
	}
	f.versions[version] = v.Number
	return v.Number
}
