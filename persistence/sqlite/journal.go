package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// journalStore writes and reads the journals of tasks.
type journalStore struct{ *database }

// Load reads snapshots and rows in one transaction, so that they match.
func (s journalStore) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	t, err := s.readers.beginSnapshot(ctx, loadQuery, loadRowsQuery, partsQuery)
	if err != nil {
		return nil, wrapError("load", err)
	}
	defer func() { _ = t.tx.Rollback() }() // the transaction has only read
	found, err := readRows(ctx, t, "load", scanLoaded, loadQuery, *listing.AsJSON(ids))
	if err != nil {
		return nil, err
	}
	records, journals := make([]*persistence.Record, len(ids)), make([][3]int64, len(found))
	for i := range found {
		l := &found[i]
		records[l.at], journals[i] = &l.Record, [3]int64{l.at, l.n, l.SnapshotSeq}
		if l.size == 0 {
			continue
		}
		if l.Snapshot, err = restOf(ctx, t, l.ID, l.SnapshotSeq, l.Snapshot, l.size); err != nil {
			return nil, err
		}
	}
	where, err := json.Marshal(journals)
	if err != nil {
		return nil, wrapError("load", err)
	}
	rows, err := readRows(ctx, t, "load", scanLoadedRow, loadRowsQuery, string(where))
	for _, r := range rows {
		records[r.at].Rows = append(records[r.at].Rows, r.Row)
	}
	// SQLite returns rows in this order without promising it; ORDER BY would sort all of them
	// together
	for i := range found {
		slices.SortFunc(found[i].Rows, func(a, b persistence.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return records, err
}

// loadedTask is a task as Load reads it.
type loadedTask struct {
	at, n int64 // position among the requested ids, and number of the journal
	size  int64 // size of all parts of the checkpoint that Snapshot begins; 0 if there is none
	persistence.Record
}

func scanLoaded(row listing.Row, l *loadedTask) error {
	return listing.Scan(row, &l.TaskRow, &l.Snapshot, &l.SnapshotSeq, &l.Resting, &l.at, &l.n, &l.size)
}

// loadedRow is a row of a task's journal.
type loadedRow struct {
	at int64
	persistence.Row
}

func scanLoadedRow(row listing.Row, r *loadedRow) error {
	return row.Scan(&r.at, &r.Seq, &r.At, &r.Events)
}

var loadQuery = "SELECT " + listing.Columns +
	", CASE WHEN c.seq IS NULL THEN t.snapshot ELSE c.snapshot END, coalesce(c.seq, " +
	"t.snapshot_seq), t.resting, j.key, t.n, coalesce(c.size, 0)" +
	" FROM json_each(?) j CROSS JOIN tasks t ON t.id = j.value" + dialect.Joins() + newestCheckpoint

const (
	newestCheckpoint = " LEFT JOIN checkpoints c ON c.task = t.id AND c.part = 0 AND c.seq = " +
		"(SELECT max(seq) FROM checkpoints WHERE task = t.id AND seq > t.snapshot_seq)"
	loadRowsQuery = "SELECT j.value ->> 0, e.seq, e.at, e.events FROM json_each(?) j CROSS " +
		"JOIN task_events e ON e.task = j.value ->> 1 AND e.seq > j.value ->> 2"
	rowsQuery = "SELECT seq, at, events FROM task_events WHERE task = (SELECT n FROM " +
		"tasks WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?"
)

func (s journalStore) Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	left := p.Bytes
	enough := func(r *persistence.Row) bool {
		left -= len(r.Events)
		return left <= 0
	}
	return readUntil(ctx, &s.readers, "read a journal", listing.ScanRow, enough, rowsQuery, task, after, p.Rows)
}

func (s journalStore) Sizes(ctx context.Context, ids []string) ([]int64, error) {
	sizes := make([]int64, len(ids))
	for i, id := range ids {
		n, err := readFirst(ctx, &s.readers, "measure a task", listing.ScanValue[int64], sizeQuery, id)
		switch {
		case err == nil:
			sizes[i] = *n
		case !errors.Is(err, persistence.ErrNotFound):
			return nil, err
		}
	}
	return sizes, nil
}

// sizeQuery uses the length of columns, which SQLite stores. The length of an expression would
// require reading the value.
const sizeQuery = "SELECT coalesce(c.size, length(t.snapshot), 0)" +
	" + coalesce((SELECT sum(length(events)) FROM task_events WHERE task = t.n AND seq > coalesce(c.seq, t.snapshot_seq)), 0)" +
	" FROM tasks t" + newestCheckpoint + " WHERE t.id = ?"

func (s journalStore) Checkpoints(ctx context.Context, task string) ([]int64, error) {
	return readRows(ctx, &s.readers, "list checkpoints", listing.ScanValue[int64],
		"SELECT seq FROM checkpoints WHERE task = ? AND part = 0 ORDER BY seq", task)
}

func (s journalStore) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return ofShards(ctx, s.database, "list unfinished tasks", listing.ScanValue[string],
		func(id string) string { return id }, shards, limit,
		"SELECT id FROM tasks WHERE ended_at = 0 AND resting = 0 AND id > ? ORDER BY id LIMIT ?", after)
}

func (s journalStore) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	return ofShards(ctx, s.database, "list due tasks", listing.ScanWake, func(w persistence.Wake) string { return w.Task }, shards, limit,
		"SELECT task, due FROM wakes WHERE due <= ? ORDER BY due, task LIMIT ?", before)
}

// ofShards returns the first rows of tasks in the given shards. It filters in memory without a
// shard column, because the only member requests all shards.
func ofShards[T any](ctx context.Context, s *database, what string, scan func(listing.Row, *T) error, task func(T) string,
	shards persistence.ShardSet, limit int, query string, arg any) ([]T, error) {
	if shards == nil {
		return readRows(ctx, &s.readers, what, scan, query, arg, limit)
	}
	left := limit
	enough := func(v *T) bool {
		if shards.Has(task(*v)) {
			left--
		}
		return left <= 0
	}
	list, err := readUntil(ctx, &s.readers, what, scan, enough, query, arg, -1)
	return slices.DeleteFunc(list, func(v T) bool { return !shards.Has(task(v)) }), err
}
