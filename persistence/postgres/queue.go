package postgres

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// queueStore reads jobs that wait for pollers.
type queueStore struct{ *database }

// QueueRows reads each service by its index and merges the results. So a long queue of one service
// does not slow down the others.
func (s queueStore) QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string,
	limit int) ([]persistence.QueueRow, error) {
	if services == nil {
		var err error
		if services, err = s.QueueServices(ctx); err != nil {
			return nil, err
		}
	}
	return readPage(ctx, s.database, "list the queue", listing.ScanJob,
		`SELECT coalesce(q.long_id, q.job_id), q.task, q.service, q.enqueued_at, q.turn, q.size, q.labels
		FROM (SELECT DISTINCT unnest($1::text[]) COLLATE "C" AS service) s
		CROSS JOIN LATERAL (SELECT * FROM troupe.task_queue q WHERE q.service = s.service AND (q.enqueued_at, q.turn) > ($2, $3)
			ORDER BY q.enqueued_at, q.turn LIMIT $4) q
		ORDER BY q.enqueued_at, q.turn LIMIT $4`, services, afterAt, afterTurn, limit)
}

// QueueFor returns the queued jobs that match the filter. A subquery reads the flow of each job.
// With EXISTS, the planner might read all tasks of the flow instead.
func (s queueStore) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return readPage(ctx, s.database, "list the queue", listing.ScanJob,
		`SELECT coalesce(q.long_id, q.job_id), q.task, q.service, q.enqueued_at, q.turn, q.size, q.labels FROM troupe.task_queue q
		WHERE q.service = $1 AND (q.enqueued_at, q.turn) > ($2, $3) AND (q.labels IS NULL OR q.labels <@ $4::jsonb)
		AND ($5 = '' OR (SELECT t.flow_id FROM troupe.tasks t WHERE t.id = q.task) = $5)
		ORDER BY q.enqueued_at, q.turn LIMIT $6`, f.Service, afterAt, afterTurn, listing.AsJSON(f.Labels), f.FlowID, limit)
}

// QueueServices steps through the index from one service to the next.
func (s queueStore) QueueServices(ctx context.Context) ([]string, error) {
	return readRows(ctx, s.database, "list the queue", listing.ScanValue[string], `WITH RECURSIVE s (service) AS (
			SELECT min(service) FROM troupe.task_queue
			UNION ALL SELECT (SELECT min(service) FROM troupe.task_queue WHERE service > s.service) FROM s WHERE s.service IS NOT NULL)
		SELECT service FROM s WHERE service IS NOT NULL`)
}

func (s queueStore) QueueBefore(ctx context.Context, task, job string, most int) (int, error) {
	job, _ = indexKey(job)
	n, err := readFirst(ctx, s.database, "count the queue", listing.ScanValue[int],
		`SELECT (SELECT count(*) FROM (SELECT FROM troupe.task_queue q
			WHERE q.service = j.service AND (q.enqueued_at, q.turn) < (j.enqueued_at, j.turn) LIMIT $3) before)
		FROM troupe.task_queue j WHERE j.task = $1 AND j.job_id = $2`, task, job, most)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (s queueStore) QueueDepth(ctx context.Context) (map[string]persistence.QueueStat, error) {
	list, err := readRows(ctx, s.database, "count the queue", listing.ScanDepth,
		"SELECT service, count(*), count(DISTINCT task), min(enqueued_at) FROM "+
			"troupe.task_queue GROUP BY service")
	depth := map[string]persistence.QueueStat{}
	for _, q := range list {
		depth[q.Service] = q.QueueStat
	}
	return depth, err
}
