package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"

	"modernc.org/sqlite"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// taskStore lists, counts and deletes tasks.
type taskStore struct{ *database }

// byUpdate divides tasks into the active ones, which are few, and all others. The index of the
// others does not change with each step.
var byUpdate = []listing.Part{
	{Where: "t.ended_at = 0 AND t.resting = 0", Order: "t.updated_at"},
	{Where: "(t.ended_at > 0 OR t.resting <> 0)", Order: "t.updated_at"},
}

var dialect = listing.Dialect{Mark: "?",
	Open:  "(t.status = 'pending' OR t.status = 'running' OR t.status = 'canceling')",
	Ended: "t.status", EndedOfFlow: " AND (t.status = 'completed' OR t.status = 'failed' OR " +
		"t.status = 'canceled')", LabelTable: true, ByUpdate: byUpdate,
	Labels: func(q *listing.Query, labels map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			q.And("EXISTS (SELECT 1 FROM task_labels WHERE key = ", key)
			q.Add(" AND value = ", labels[key])
			q.Add(" AND created_at = t.created_at AND task = t.id)")
		}
	}, Like: "LIKE", Failure: "troupe_failure(t.error)", Aside: "+", Some: "0 + ", Narrow: true,
	LabelSays: func(q *listing.Query, text string) {
		q.Add("EXISTS (SELECT 1 FROM task_labels x WHERE x.task = t.id AND x.value = ", text)
		q.Add(")")
	}, LabelOf: func(q *listing.Query, name string) {
		q.Add("(SELECT value FROM task_labels x WHERE x.task = t.id AND x.key = ", name)
		q.Add(")")
	}}

// The driver adds this function to every connection of the process.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("troupe_failure", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			text, ok := args[0].(string)
			if !ok {
				return nil, fmt.Errorf("an error is a text, not %T", args[0])
			}
			return persistence.Failure(text), nil
		})
}

func (s taskStore) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	return readFirst(ctx, &s.readers, "read a task", listing.ScanTask, "SELECT "+listing.Columns+dialect.From()+" WHERE t.id = ?", id)
}

// few is the number of rows below which they are looked up one by one, instead of testing every row
// of a list. These rows are jobs of a queue, or tasks with a label, flow or id prefix.
const few = 2_000

// dialectFor returns the dialect with flags for properties of the filter that are rare.
func (s taskStore) dialectFor(ctx context.Context, f persistence.TaskFilter) (d listing.Dialect, err error) {
	d = dialect
	if f.Queued != "" {
		if d.ByJobs, err = s.findsFew(ctx, "SELECT 1 FROM task_queue WHERE service = ?", f.Queued); err != nil {
			return d, err
		}
	}
	if len(f.Labels) == 0 || len(f.Labels) == 1 && !f.ByEnd && f.FlowID == "" {
		return d, nil
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		rare, err := s.findsFew(ctx, "SELECT 1 FROM task_labels WHERE key = ? AND value = ?", key, f.Labels[key])
		if err != nil {
			return d, err
		}
		if rare {
			d.RareLabel = key
			return d, nil
		}
	}
	if f.FlowID != "" {
		d.ByFlow, err = s.findsFew(ctx, "SELECT 1 FROM tasks WHERE flow_id = ?", f.FlowID)
	}
	return d, err
}

// findsFew reports whether a query returns fewer than few rows.
func (s taskStore) findsFew(ctx context.Context, query string, args ...any) (bool, error) {
	n, err := readFirst(ctx, &s.readers, "count rows", listing.ScanValue[int],
		"SELECT count(*) FROM ("+query+" LIMIT ?)", append(args, few)...)
	return err == nil && *n < few, err
}

func (s taskStore) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	d, err := s.dialectFor(ctx, f)
	if err != nil {
		return nil, err
	}
	if f.IDPrefix != "" {
		some, err := s.findsFew(ctx, "SELECT 1 FROM tasks WHERE id >= ? AND id < ?", f.IDPrefix, f.IDPrefix+"\U0010FFFF")
		if err != nil {
			return nil, err
		}
		d.ManyIDs = !some
	}
	q := listing.List(d, f)
	return readRows(ctx, s.readers.db, "list tasks", listing.ScanTask, q.String(), q.Args...)
}

func (s taskStore) CountTasks(ctx context.Context, f persistence.TaskFilter) (int, error) {
	d, err := s.dialectFor(ctx, f)
	if err != nil {
		return 0, err
	}
	q := listing.Count(d, f)
	n, err := readFirst(ctx, s.readers.db, "count tasks", listing.ScanValue[int], q.String(), q.Args...)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (s taskStore) CountTasksBy(ctx context.Context, f persistence.TaskFilter, by persistence.By) (map[string]persistence.Group, error) {
	d, err := s.dialectFor(ctx, f)
	if err != nil {
		return nil, err
	}
	q := listing.CountBy(d, f, by)
	rows, err := readRows(ctx, s.readers.db, "count tasks", listing.ScanCounted, q.String(), q.Args...)
	return listing.Groups(rows, f.Most), err
}

func (s taskStore) NewestOf(ctx context.Context, flows []string, each int) ([]persistence.TaskMark, error) {
	var all []persistence.TaskMark
	for _, id := range slices.Compact(slices.Sorted(slices.Values(flows))) {
		list, err := readRows(ctx, &s.readers, "list the newest tasks", listing.ScanTaskMark,
			"SELECT flow_id, id, status, created_at FROM tasks WHERE flow_id = ? ORDER BY created_at DESC, id DESC LIMIT ?", id, each)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// CountByShard hashes the task ids, because the table has no shard column. It counts active tasks
// by their index; the other unfinished tasks are resting.
func (s taskStore) CountByShard(ctx context.Context) (map[int]persistence.ShardTasks, error) {
	t, err := s.readers.beginSnapshot(ctx, openIDs, unfinishedIDs)
	if err != nil {
		return nil, wrapError("count tasks", err)
	}
	defer func() { _ = t.tx.Rollback() }() // the transaction has only read
	open, err := readRows(ctx, t, "count tasks", listing.ScanValue[string], openIDs)
	if err != nil {
		return nil, err
	}
	underWay, err := readRows(ctx, t, "count tasks", listing.ScanValue[string], unfinishedIDs)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, id := range underWay {
		there[id] = true
	}
	counts := map[int]persistence.ShardTasks{}
	for _, id := range open {
		counts[persistence.ShardOf(id)] = counts[persistence.ShardOf(id)].With(!there[id])
	}
	return counts, nil
}

const (
	openIDs       = "SELECT id FROM tasks WHERE status = 'pending' OR status = 'running' OR status = 'canceling'"
	unfinishedIDs = "SELECT id FROM tasks WHERE ended_at = 0 AND resting = 0"
)

func (s taskStore) EndedBetween(ctx context.Context, from, before int64, limit int) ([]persistence.TaskEnd, error) {
	return readRows(ctx, &s.readers, "list ended tasks", listing.ScanTaskEnd,
		"SELECT id, ended_at FROM tasks WHERE ended_at >= ? AND ended_at < ? AND ended_at > 0 "+
			"ORDER BY ended_at, id LIMIT ?", from, before, limit)
}

// turnTasks is the number of tasks deleted in one transaction, before waiting writers get a turn.
const turnTasks = 50

// inTurns deletes up to limit tasks in several transactions. step deletes at most the given number
// and returns how many it deleted.
func (s taskStore) inTurns(ctx context.Context, what string, limit int, step func(t writeTx, most int) (int,
	error)) (deleted int, err error) {
	for deleted < limit {
		most, n := min(turnTasks, limit-deleted), 0
		err := s.inTransaction(ctx, what, func(t writeTx) (err error) {
			n, err = step(t, most)
			return err
		})
		if err != nil {
			return deleted, err
		}
		if deleted += n; n < most {
			break
		}
	}
	return deleted, nil
}

func (s taskStore) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	return s.inTurns(ctx, "delete ended tasks", limit, func(t writeTx, most int) (int, error) {
		return t.deleteTasks(most, "SELECT n FROM tasks WHERE ended_at > 0 AND ended_at < ? ORDER BY ended_at, id LIMIT 1", before)
	})
}

func (s taskStore) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	return s.inTurns(ctx, "delete a flow", limit, func(t writeTx, most int) (int, error) {
		if _, err := t.execCount("DELETE FROM schedules WHERE flow_id = ?", id); err != nil {
			return 0, err
		}
		deleted, err := t.deleteTasks(most, "SELECT n FROM tasks WHERE flow_id = ? ORDER BY created_at DESC, id DESC LIMIT 1", id)
		if err != nil || deleted == most {
			return deleted, err
		}
		for _, query := range []string{"DELETE FROM flow_versions WHERE flow_id = ?",
			"DELETE FROM stats WHERE flow = ?", "DELETE FROM flows WHERE id = ?"} {
			if _, err := t.execCount(query, id); err != nil {
				return 0, err
			}
		}
		return deleted, nil
	})
}

// deleteTasks deletes up to most tasks with all their data. The query next selects the next task.
func (t writeTx) deleteTasks(most int, next string, arg any) (deleted int, err error) {
	for ; deleted < most; deleted++ {
		var id string
		var n int64
		err := t.queryOne("DELETE FROM tasks WHERE n = ("+next+") RETURNING id, n", []any{arg}, &id, &n)
		if isNone(err) {
			break
		}
		if err != nil {
			return 0, err
		}
		if err := t.deleteRest(id, n); err != nil {
			return 0, err
		}
	}
	return deleted, nil
}

// deleteRest deletes the remaining data of a deleted task.
func (t writeTx) deleteRest(task string, n int64) error {
	t.lane.ends.Drop(task)
	if _, err := t.execCount("DELETE FROM task_events WHERE task = ?", n); err != nil {
		return err
	}
	for _, query := range []string{
		"DELETE FROM checkpoints WHERE task = ?",
		"DELETE FROM task_labels WHERE task = ?",
		"DELETE FROM wakes WHERE task = ?",
		"DELETE FROM task_queue WHERE task = ?",
		"DELETE FROM permits WHERE task = ?",
		"DELETE FROM externals WHERE task = ?",
		"DELETE FROM approvals WHERE task = ?",
		"DELETE FROM task_logs WHERE task = ?",
		"DELETE FROM task_streams WHERE task = ?",
		"DELETE FROM stream_values WHERE task = ?",
	} {
		if _, err := t.execCount(query, task); err != nil {
			return err
		}
	}
	return nil
}
