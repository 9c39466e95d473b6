package postgres

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

var dialect = listing.Dialect{
	Mark:     "$",
	Open:     "t.ended_at = 0",
	Ended:    "t.outcome",
	Labels:   func(q *listing.Query, labels map[string]string) { q.And("t.labels @> ", listing.Labels(labels)) },
	ByUpdate: []listing.Part{{Where: "t.settled_at IS NULL", Order: "t.updated_at"}, {Where: "t.settled_at IS NOT NULL", Order: "t.settled_at"}},
}

func (s *store) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	return find(ctx, s, "read a task", listing.ScanTask, "SELECT "+listing.Columns+listing.From+" WHERE t.id = $1", id)
}

func (s *store) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	q := listing.List(dialect, f)
	return read(ctx, s, "list tasks", listing.ScanTask, q.String(), q.Args...)
}

func (s *store) CountTasks(ctx context.Context, f persistence.TaskFilter) (int, error) {
	q := listing.Count(dialect, f)
	n, err := first(ctx, s, "count tasks", listing.ScanValue[int], q.String(), q.Args...)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (s *store) CountByStatus(ctx context.Context) (map[string]int, error) {
	list, err := read(ctx, s, "count tasks", listing.ScanStatusCount, "SELECT status, count(*) FROM tasks GROUP BY status")
	counts := map[string]int{}
	for _, c := range list {
		counts[c.Status] = c.Count
	}
	return counts, err
}

// deleteGone is what a statement does with the tasks that its part gone has deleted.
const deleteGone = `
		events AS (DELETE FROM task_events WHERE task IN (SELECT id FROM gone)),
		checks AS (DELETE FROM checkpoints WHERE task IN (SELECT id FROM gone)),
		wakes AS (DELETE FROM wakes WHERE task IN (SELECT id FROM gone)),
		queue AS (DELETE FROM task_queue WHERE task IN (SELECT id FROM gone)),
		logs AS (DELETE FROM task_logs WHERE task IN (SELECT id FROM gone))`

// DeleteEnded leaves rows alone that somebody else is just deleting.
func (s *store) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	n, err := first(ctx, s, "delete ended tasks", listing.ScanValue[int], `WITH gone AS MATERIALIZED (
			DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE ended_at > 0 AND ended_at < $1
				ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id),`+deleteGone+`
		SELECT count(*) FROM gone`, before, limit)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

// DeleteFlow waits for its answer although its caller has gone: a deletion that goes on unheard could still meet a batch.
func (s *store) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	s.deleting.Lock()
	defer s.deleting.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience["statement_timeout"]) // the server gives up first
	defer cancel()
	defer s.memory.forget()
	n, err := first(ctx, s, "delete a flow", listing.ScanValue[int], `WITH gone AS MATERIALIZED (
			DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE flow_id = $1 LIMIT $2) RETURNING id),`+deleteGone+`,
		versions AS (DELETE FROM flow_versions WHERE flow_id = $1 AND (SELECT count(*) FROM gone) < $2),
		flow AS (DELETE FROM flows WHERE id = $1 AND (SELECT count(*) FROM gone) < $2)
		SELECT count(*) FROM gone`, id, limit)
	if err != nil {
		return 0, err
	}
	return *n, nil
}
