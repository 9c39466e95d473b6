package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// taskStore lists, counts and deletes tasks.
type taskStore struct{ *database }

var dialect = listing.Dialect{
	Mark:    "$",
	Schema:  DefaultSchema + ".",
	Open:    "t.ended_at = 0",
	Ended:   "t.outcome",
	Labels:  func(q *listing.Query, labels map[string]string) { q.And("t.labels @> ", listing.Labels(labels)) },
	Like:    "ILIKE",
	Failure: failureSQL(fmt.Sprintf("left(t.error, %d)", persistence.FailureChars)),
	LabelSays: func(q *listing.Query, text string) {
		q.Add("EXISTS (SELECT FROM jsonb_each_text(t.labels) x WHERE x.value = ", text)
		q.Add(")")
	},
	LabelOf: func(q *listing.Query, name string) { q.Add("t.labels ->> ", name) },
	ByUpdate: []listing.Part{{Where: "t.settled_at IS NULL", Order: "t.updated_at"},
		{Where: "t.settled_at IS NOT NULL", Order: "t.settled_at"}},
}

// failureSQL returns persistence.Failure as an SQL expression for the beginning of an error.
func failureSQL(err string) string {
	node := "strpos(" + err + ", ': ')"
	return "left(" + err + ", greatest(" + node + " - 1, 0)) || regexp_replace(substr(" + err +
		", greatest(" + node + ", 1)), '[0-9]+', '#', 'g')"
}

func (s taskStore) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	return findByKey(ctx, s.database, "read a task", listing.ScanTask, "SELECT "+listing.Columns+dialect.From()+" WHERE t.id = $1", id)
}

func (s taskStore) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	q := listing.List(dialect, f)
	if hasIndexOrder(f) {
		return readPage(ctx, s.database, "list tasks", listing.ScanTask, q.String(), q.Args...)
	}
	return readRows(ctx, s.database, "list tasks", listing.ScanTask, q.String(), q.Args...)
}

// hasIndexOrder reports whether an index has the filtered tasks in list order. With other
// conditions, few tasks may match, and sorting them is faster.
func hasIndexOrder(f persistence.TaskFilter) bool {
	if f.Limit == 0 || len(f.Labels) > 0 || len(f.FlowIDs) > 0 {
		return false
	}
	f.Labels, f.FlowIDs = nil, nil // empty labels and flows filter like nil
	f.FlowID, f.Statuses, f.Paused, f.Waits, f.Before, f.Oldest, f.Offset, f.Limit = "", nil, nil, 0, persistence.Spot{}, false, 0, 0
	return reflect.ValueOf(f).IsZero()
}

func (s taskStore) CountTasks(ctx context.Context, f persistence.TaskFilter) (int, error) {
	q := listing.Count(dialect, f)
	n, err := readFirst(ctx, s.database, "count tasks", listing.ScanValue[int], q.String(), q.Args...)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (s taskStore) CountTasksBy(ctx context.Context, f persistence.TaskFilter, by persistence.By) (map[string]persistence.Group, error) {
	q := listing.CountBy(dialect, f, by)
	rows, err := readRows(ctx, s.database, "count tasks", listing.ScanCounted, q.String(), q.Args...)
	return listing.Groups(rows, f.Most), err
}

func (s taskStore) NewestOf(ctx context.Context, flows []string, each int) ([]persistence.TaskMark, error) {
	flows = slices.DeleteFunc(slices.Clone(flows), func(id string) bool { return !flow.IsText(id) })
	return readPage(ctx, s.database, "list the newest tasks", listing.ScanTaskMark,
		`SELECT t.* FROM (SELECT DISTINCT id COLLATE "C" FROM unnest($1::text[]) d (id)) f (id),
			LATERAL (SELECT flow_id, id, status, created_at FROM troupe.tasks WHERE flow_id = f.id ORDER BY created_at DESC, id DESC LIMIT $2) t
		ORDER BY t.flow_id, t.created_at DESC, t.id DESC`, flows, each)
}

func (s taskStore) CountByShard(ctx context.Context) (map[int]persistence.ShardTasks, error) {
	list, err := readRows(ctx, s.database, "count tasks", listing.ScanShardCount,
		"SELECT shard, count(*) FILTER (WHERE settled_at IS NULL), count(settled_at) FROM troupe.tasks WHERE ended_at = 0 GROUP BY shard")
	counts := map[int]persistence.ShardTasks{}
	for _, c := range list {
		counts[c.Shard] = c.ShardTasks
	}
	return counts, err
}

// deleteGone is the part of a statement that deletes all data of the tasks in its part gone.
const deleteGone = `
		events AS (DELETE FROM troupe.task_events WHERE task IN (SELECT troupe.journal_key(id) FROM gone)),
		checks AS (DELETE FROM troupe.checkpoints WHERE task IN (SELECT id FROM gone)),
		wakes AS (DELETE FROM troupe.wakes WHERE task IN (SELECT id FROM gone)),
		permits AS (DELETE FROM troupe.permits WHERE task IN (SELECT id FROM gone)),
		outside AS (DELETE FROM troupe.externals WHERE task IN (SELECT id FROM gone)),
		asking AS (DELETE FROM troupe.approvals WHERE task IN (SELECT id FROM gone)),
		queue AS (DELETE FROM troupe.task_queue WHERE task IN (SELECT id FROM gone)),
		logs AS (DELETE FROM troupe.task_logs WHERE task IN (SELECT id FROM gone)),
		streams AS (DELETE FROM troupe.task_streams WHERE task IN (SELECT id FROM gone)),
		streamed AS (DELETE FROM troupe.stream_values WHERE task IN (SELECT id FROM gone))`

func (s taskStore) EndedBetween(ctx context.Context, from, before int64, limit int) ([]persistence.TaskEnd, error) {
	return readPage(ctx, s.database, "list ended tasks", listing.ScanTaskEnd,
		"SELECT id, ended_at FROM troupe.tasks WHERE ended_at > 0 AND ended_at >= $1 AND "+
			"ended_at < $2 ORDER BY ended_at, id LIMIT $3", from, before, limit)
}

// DeleteEnded skips rows that another member is deleting.
func (s taskStore) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	n, err := readPage(ctx, s.database, "delete ended tasks", listing.ScanValue[int], `WITH gone AS MATERIALIZED (
			DELETE FROM troupe.tasks WHERE id IN (SELECT id FROM troupe.tasks WHERE ended_at > 0 AND ended_at < $1
				ORDER BY ended_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id),`+deleteGone+`
		SELECT count(*) FROM gone`, before, limit)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// DeleteFlow begins a new era. It waits for batches in progress by locking the members. Later
// batches wait, write nothing, and check again. Renewals continue. A join happens completely before
// or after. DeleteFlow first waits for transactions that start tasks of the flow (see Begin),
// because they lock its versions.
func (s taskStore) DeleteFlow(ctx context.Context, id string, limit int) (n int, err error) {
	var batch pgx.Batch
	held := true
	batch.Queue(onlyIndexes)
	batch.Queue("SELECT FROM troupe.flow_versions WHERE flow_id = $1 FOR UPDATE", id).Exec(func(pgconn.CommandTag) error {
		held = false
		return nil
	})
	batch.Queue(lockJoining, s.schema.lockID(joining))
	batch.Queue(lockVersions, id, s.schema.lockID(publishing))
	batch.Queue("UPDATE troupe.members SET era = (SELECT era + 1 FROM troupe.cluster) WHERE fenced_at = 0")
	batch.Queue(`WITH gone AS MATERIALIZED (
			DELETE FROM troupe.tasks WHERE id IN (SELECT id FROM troupe.tasks WHERE flow_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2) RETURNING id),`+deleteGone+`,
		versions AS (DELETE FROM troupe.flow_versions WHERE flow_id = $1 AND (SELECT count(*) FROM gone) < $2),
		stats AS (DELETE FROM troupe.stats WHERE flow = $1 AND (SELECT count(*) FROM gone) < $2),
		flow AS (DELETE FROM troupe.flows WHERE id = $1 AND (SELECT count(*) FROM gone) < $2)
		SELECT count(*) FROM gone`, id, limit).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	// this includes a schedule that was stored during the wait
	batch.Queue("DELETE FROM troupe.schedules WHERE flow_id = $1", id)
	batch.Queue("UPDATE troupe.cluster SET era = era + 1")
	err = s.inOne(ctx, s.pool, &batch)
	if e := new(pgconn.PgError); held && errors.As(err, &e) && e.Code == lockNotAvailable {
		return 0, fmt.Errorf("delete a flow: %w: %w", persistence.ErrHeld, err)
	}
	return n, wrapError("delete a flow", err)
}
