package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// streamStore keeps the values that steps write to streams.
type streamStore struct{ *database }

func (s streamStore) AppendStreams(ctx context.Context, writes []persistence.StreamWrite,
	most persistence.StreamLimits) (errs []error, err error) {
	err = s.inTransaction(ctx, "append to streams", func(t writeTx) error {
		tails, err := t.streamTails(writes)
		if err != nil {
			return err
		}
		var rows []persistence.StreamRow
		rows, errs = tails.Add(writes, most)
		for i := range rows {
			r := &rows[i]
			if _, err := t.execCount("INSERT INTO stream_values ("+listing.StreamColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				r.Task, r.Name, r.First, r.Last, r.Job, r.Step, r.Try, r.Source, r.Number, r.At, r.Content); err != nil {
				return err
			}
		}
		for _, c := range tails.ChangedStreams() {
			if _, err := t.execCount("INSERT INTO task_streams (task, "+listing.StreamSizeColumns+") VALUES (?, ?, ?, ?, ?) "+
				"ON CONFLICT (task, name) DO UPDATE SET length = excluded.length, bytes = excluded.bytes, ended = excluded.ended",
				c.Task, c.Name, c.Length, c.Bytes, c.Ended); err != nil {
				return err
			}
		}
		return nil
	})
	return errs, err
}

func (t writeTx) streamTails(writes []persistence.StreamWrite) (*persistence.StreamTails, error) {
	tails := persistence.NewStreamTails()
	for i := range writes {
		if err := t.streamTail(tails, &writes[i]); err != nil {
			return nil, err
		}
	}
	return tails, nil
}

func (t writeTx) streamTail(tails *persistence.StreamTails, w *persistence.StreamWrite) error {
	if tails.Tasks[w.Task] == nil {
		var id string
		if err := t.queryOne("SELECT id FROM tasks WHERE id = ?", []any{w.Task}, &id); err != nil {
			if isNone(err) {
				return nil
			}
			return err
		}
		tails.AddTask(w.Task)
		sizes, err := queryRows(t, listing.ScanStreamSize, "SELECT "+listing.StreamSizeColumns+" FROM task_streams WHERE task = ?", w.Task)
		if err != nil {
			return err
		}
		for i := range sizes {
			tails.Tasks[w.Task][sizes[i].Name] = &sizes[i]
		}
	}
	source := persistence.StreamSource{Task: w.Task, Name: w.Name, Source: w.Source}
	if _, known := tails.Sources[source]; known {
		return nil
	}
	var number int64
	err := t.queryOne("SELECT number FROM stream_values WHERE task = ? AND name = ? AND source = ? ORDER BY number DESC LIMIT 1",
		[]any{w.Task, w.Name, w.Source}, &number)
	if err != nil && !isNone(err) {
		return err
	}
	tails.Sources[source] = number
	return nil
}

func (s streamStore) ReadStream(ctx context.Context, f persistence.StreamFilter) ([]persistence.StreamRow, error) {
	return readRows(ctx, &s.readers, "read a stream", listing.ScanStream, "SELECT "+listing.StreamColumns+
		" FROM stream_values WHERE task = ? AND name = ? AND last >= ? ORDER BY last LIMIT ?", f.Task, f.Name, f.From, f.Limit)
}

func (s streamStore) StreamSizes(ctx context.Context, task string) ([]persistence.StreamSize, error) {
	return readRows(ctx, &s.readers, "list streams", listing.ScanStreamSize,
		"SELECT "+listing.StreamSizeColumns+" FROM task_streams WHERE task = ? ORDER BY name", task)
}
