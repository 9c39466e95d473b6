package postgres

import (
	"context"
	"crypto/md5"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// journalStore writes and reads the journals of tasks.
type journalStore struct{ *database }

// Load reads the tasks, and then the rows after the snapshots that were just read. So a snapshot
// written in between does no harm.
func (s journalStore) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	var sizes []int64
	scan := func(row listing.Row, r *persistence.Record) error {
		sizes = append(sizes, 0)
		return listing.Scan(row, &r.TaskRow, &r.Snapshot, &r.SnapshotSeq, &r.Resting, &sizes[len(sizes)-1])
	}
	known := s.larges.findKnown(ids)
	found, err := readRows(ctx, s.database, "load", scan, "SELECT "+listing.Columns+`,
		CASE WHEN EXISTS (SELECT FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS k (id, created_at, seq)
				WHERE k.id = t.id AND k.created_at = t.created_at AND k.seq = coalesce(c.seq, t.snapshot_seq)) THEN NULL
			WHEN c.seq IS NULL THEN t.snapshot ELSE c.snapshot END, coalesce(c.seq, t.snapshot_seq), t.resting, coalesce(c.size, 0)`+dialect.From()+
		newestCheckpoint+` WHERE t.id = ANY($1)`, ids, known.ids, known.created, known.seq)
	if err != nil {
		return nil, err
	}
	if err := s.completeCheckpoints(ctx, found, sizes); err != nil {
		return nil, err
	}
	s.larges.storeRead(known, found)
	byID := make(map[string]*persistence.Record, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	if err := s.loadRows(ctx, found); err != nil {
		return nil, err
	}
	records := make([]*persistence.Record, len(ids))
	for i, id := range ids {
		// A task has rows or a snapshot, unless it was deleted meanwhile.
		if r := byID[id]; r != nil && (len(r.Rows) > 0 || r.Snapshot != nil) {
			records[i] = r
		}
	}
	return records, nil
}

const newestCheckpoint = `
		LEFT JOIN LATERAL (SELECT seq, size, snapshot FROM troupe.checkpoints
			WHERE task = t.id AND seq > t.snapshot_seq AND part = 0 ORDER BY seq DESC LIMIT 1) c ON true`

func (s journalStore) loadRows(ctx context.Context, found []persistence.Record) error {
	if len(found) == 0 {
		return nil
	}
	keys, after := make([][16]byte, len(found)), make([]int64, len(found))
	for i := range found {
		keys[i], after[i] = journalKey(found[i].ID), found[i].SnapshotSeq
	}
	type row struct {
		n int // position of the task in the request, from 1
		persistence.Row
	}
	scan := func(from listing.Row, r *row) error { return from.Scan(&r.n, &r.Seq, &r.At, &r.Events) }
	rows, err := readRows(ctx, s.database, "load", scan,
		`SELECT d.n, e.seq, e.at, e.events FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS d (task, after, n)
		CROSS JOIN LATERAL (SELECT * FROM troupe.task_events e WHERE e.task = d.task AND e.seq > d.after ORDER BY e.seq) e
		ORDER BY d.n, e.seq`, keys, after)
	for _, r := range rows {
		found[r.n-1].Rows = append(found[r.n-1].Rows, r.Row)
	}
	return err
}

func (s journalStore) Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	return readPage(ctx, s.database, "read a journal", listing.ScanRow, `SELECT seq, at, events FROM (
			SELECT seq, at, events, sum(octet_length(events)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(events) AS before
			FROM troupe.task_events WHERE task = $1 AND seq > $2 ORDER BY seq LIMIT $3) e
		WHERE before < $4 OR before = 0 ORDER BY seq`, journalKey(task), after, p.Rows, p.Bytes)
}

func (s journalStore) Sizes(ctx context.Context, ids []string) ([]int64, error) {
	type size struct {
		task  string
		bytes int64
	}
	scan := func(row listing.Row, n *size) error { return row.Scan(&n.task, &n.bytes) }
	found, err := readRows(ctx, s.database, "measure tasks", scan, `SELECT t.id, coalesce(c.size, octet_length(t.snapshot), 0)
		+ coalesce((SELECT sum(octet_length(events)) FROM troupe.task_events WHERE task = troupe.journal_key(t.id) AND seq > coalesce(c.seq, t.snapshot_seq)), 0)
		FROM troupe.tasks t`+newestCheckpoint+` WHERE t.id = ANY($1)`, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !flow.IsText(id) }))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]int64, len(found))
	for _, n := range found {
		byID[n.task] = n.bytes
	}
	sizes := make([]int64, len(ids))
	for i, id := range ids {
		sizes[i] = byID[id]
	}
	return sizes, nil
}

func (s journalStore) Checkpoints(ctx context.Context, task string) ([]int64, error) {
	if !flow.IsText(task) {
		return nil, nil
	}
	return readRows(ctx, s.database, "list checkpoints", listing.ScanValue[int64],
		"SELECT seq FROM troupe.checkpoints WHERE task = $1 AND part = 0 ORDER BY seq", task)
}

// ofShards is a condition on shards. $1 has a bit for each selected shard, or is null for all.
// Testing a bit is faster than searching a list.
const ofShards = " ($1::bytea IS NULL OR get_bit($1, shard) = 1) "

func shardBits(shards persistence.ShardSet) []byte {
	if shards == nil {
		return nil
	}
	set := make([]byte, persistence.Shards/8)
	for _, shard := range shards {
		set[shard/8] |= 1 << (shard % 8)
	}
	return set
}

func (s journalStore) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return readPage(ctx, s.database, "list unfinished tasks", listing.ScanValue[string],
		"SELECT id FROM troupe.tasks WHERE settled_at IS NULL AND"+ofShards+
			"AND id > $2 ORDER BY id LIMIT $3", shardBits(shards), after, limit)
}

func (s journalStore) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	return readPage(ctx, s.database, "list due tasks", listing.ScanWake,
		"SELECT task, due FROM troupe.wakes WHERE"+ofShards+"AND due <= $2 ORDER BY due, task LIMIT $3", shardBits(shards), before, limit)
}

// journalKey returns the key of a task in the journal, like the database function journal_key.
func journalKey(task string) [16]byte {
	if text, ok := strings.CutPrefix(task, "task-"); ok && len(text) == 36 && strings.ToLower(text) == text {
		if id, err := uuid.Parse(text); err == nil {
			return id
		}
	}
	return md5.Sum([]byte(task))
}
