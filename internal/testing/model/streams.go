package model

import (
	"context"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// streamTable holds the streams of a store.
type streamTable struct {
	store  *store
	byTask map[string]map[string]*streamRows // by task and name
}

// streamRows are the rows of one stream, and their size.
type streamRows struct {
	size persistence.StreamSize
	rows []persistence.StreamRow
}

func (t *streamTable) AppendStreams(ctx context.Context, writes []persistence.StreamWrite, most persistence.StreamLimits) ([]error, error) {
	leave, err := t.store.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	tails := t.streamTails(writes)
	rows, errs := tails.Add(writes, most)
	for _, c := range tails.ChangedStreams() {
		if t.byTask[c.Task] == nil {
			t.byTask[c.Task] = map[string]*streamRows{}
		}
		if t.byTask[c.Task][c.Name] == nil {
			t.byTask[c.Task][c.Name] = &streamRows{}
		}
		t.byTask[c.Task][c.Name].size = c.StreamSize
	}
	for _, row := range rows {
		of := t.byTask[row.Task][row.Name]
		of.rows = append(of.rows, row)
	}
	return errs, nil
}

func (t *streamTable) streamTails(writes []persistence.StreamWrite) *persistence.StreamTails {
	tails := persistence.NewStreamTails()
	for _, w := range writes {
		if t.store.tasks[w.Task] == nil {
			continue
		}
		tails.AddTask(w.Task)
		for name, of := range t.byTask[w.Task] {
			size := of.size
			tails.Tasks[w.Task][name] = &size
			for _, r := range of.rows {
				tails.Sources[persistence.StreamSource{Task: r.Task, Name: r.Name, Source: r.Source}] = r.Number
			}
		}
	}
	return tails
}

func (t *streamTable) ReadStream(ctx context.Context, f persistence.StreamFilter) (rows []persistence.StreamRow, err error) {
	leave, err := t.store.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if of := t.byTask[f.Task][f.Name]; of != nil {
		for _, r := range of.rows {
			if r.Last >= f.From && len(rows) < f.Limit {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

func (t *streamTable) StreamSizes(ctx context.Context, task string) (sizes []persistence.StreamSize, err error) {
	leave, err := t.store.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, of := range t.byTask[task] {
		sizes = append(sizes, of.size)
	}
	slices.SortFunc(sizes, func(a, b persistence.StreamSize) int { return strings.Compare(a.Name, b.Name) })
	return sizes, nil
}
