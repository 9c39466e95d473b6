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

// folder makes spans of rows.
type folder struct {
	store    persistence.Store
	tasks    memory
	versions map[string]int // numbers by ids
}

// fold takes rows in the order in which they were stored.
func (t *Teller) fold() {
	defer close(t.folded)
	f := &folder{store: t.opts.Store, tasks: newMemory(), versions: map[string]int{}}
	for row, ok := t.next(); ok && t.ctx.Err() == nil; row, ok = t.next() {
		t.bytes.Add(-int64(len(row.Events)))
		k, err := f.add(t.ctx, &row)
		if err != nil { // reading it again with each row would hold up all other tasks
			k = &known{}
			t.opts.Logger.Debug("a task is not told as spans any further", "task", row.Task, "row", row.Seq, "error", err)
		}
		if k == nil {
			continue
		}
		t.take(k, &row)
		if row.Ended {
			f.tasks.drop(row.Task)
		} else {
			f.tasks.keep(row.Task, k)
		}
	}
}

// take has told what has ended by a row.
func (t *Teller) take(k *known, row *actors.StoredRow) {
	if k.trace == nil {
		t.dropped.Inc()
		return
	}
	for _, s := range k.trace.Take() {
		t.pass(Span{Span: s, Task: row.Task, Flow: k.flow, Version: k.version})
	}
	k.trace.Follow(nil)
}

// next is the next row; there is none when the teller is closed and has told what was there.
func (t *Teller) next() (row actors.StoredRow, ok bool) {
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

// add follows a task up to a row. It is nil when nothing is told of the task before its end.
func (f *folder) add(ctx context.Context, row *actors.StoredRow) (*known, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k := f.tasks.of(row.Task)
	if k == nil {
		told, forgotten := f.tasks.forgotten(row.Task)
		if forgotten && !row.Ended {
			return nil, nil
		}
		var err error
		if k, err = f.begin(ctx, row, told); err != nil {
			return nil, err
		}
	}
	if k.trace == nil || row.Seq <= k.seq { // or it was read already
		return k, nil
	}
	k.trace.Follow(row.Plan)
	if row.Seq > k.seq+1 || row.Events == nil {
		return k, f.read(ctx, row.Task, k, row.Seq)
	}
	return k, k.add(row.Seq, row.Events)
}

// begin follows a task that is not known, or not any longer, from its first row. Nothing is told again that was told up to a row.
func (f *folder) begin(ctx context.Context, row *actors.StoredRow, told int64) (*known, error) {
	k := &known{trace: trace.New(row.Task, row.Plan), flow: cmp.Or(row.Plan.FlowSlug, row.Plan.FlowID), version: f.numberOf(ctx, row.Version)}
	until := row.Seq - 1
	if told > 0 {
		until = told
	}
	if err := f.read(ctx, row.Task, k, until); err != nil {
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

func (k *known) add(seq int64, row []byte) error {
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

// part is how much of a journal is read at once.
var part = persistence.Part{Rows: 1000, Bytes: 1 << 20}

// read follows the journal in the store up to a row.
func (f *folder) read(ctx context.Context, task string, k *known, until int64) error {
	for k.seq < until {
		rows, err := f.store.Rows(ctx, task, k.seq, part)
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		for _, r := range rows {
			if r.Seq > until {
				return nil
			}
			if err := k.add(r.Seq, r.Events); err != nil {
				return err
			}
		}
		if !part.Full(rows) {
			return nil
		}
	}
	return nil
}

// mostVersions is how many numbers are remembered.
const mostVersions = 1000

// numberOf is the number of a version; without one spans are told all the same.
func (f *folder) numberOf(ctx context.Context, version string) int {
	if n, ok := f.versions[version]; ok {
		return n
	}
	v, err := f.store.Version(ctx, version)
	if err != nil {
		return 0
	}
	if len(f.versions) >= mostVersions {
		clear(f.versions)
	}
	f.versions[version] = v.Number
	return v.Number
}
