package sqlite

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// queueStore reads jobs that wait for pollers.
type queueStore struct{ *database }

// QueueRows reads each service by its index and merges the results. So a long queue of one service
// does not slow down the others. With many services it first reads few rows of each, and then more
// of the services that come next.
func (s queueStore) QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string,
	limit int) ([]persistence.QueueRow, error) {
	if services == nil {
		var err error
		if services, err = s.QueueServices(ctx); err != nil {
			return nil, err
		}
	}
	services = slices.Compact(slices.Sorted(slices.Values(services)))
	var all queueHeap
	for _, service := range services {
		l := &queueReader{service: service, at: afterAt, turn: afterTurn, task: behindAll,
			piece: (limit + len(services) - 1) / len(services)}
		if err := s.readPiece(ctx, l); err != nil {
			return nil, err
		}
		if len(l.rows) > 0 {
			all = append(all, l)
		}
	}
	heap.Init(&all)
	rows := []persistence.QueueRow{}
	for len(all) > 0 && len(rows) < limit {
		first := all[0]
		rows, first.rows = append(rows, first.rows[0]), first.rows[1:]
		if len(first.rows) == 0 && first.more {
			if err := s.readPiece(ctx, first); err != nil {
				return nil, err
			}
		}
		if len(first.rows) == 0 {
			heap.Pop(&all)
		} else {
			heap.Fix(&all, 0)
		}
	}
	return rows, nil
}

// queueReader reads the queue of a service in pieces, each twice as long as the previous one.
type queueReader struct {
	service string
	rows    []persistence.QueueRow // next rows
	more    bool                   // there may be more rows
	at      int64                  // position of the last row read, with the next three fields
	turn    string
	task    string
	job     string
	piece   int // number of rows to read next
}

// behindAll sorts after every task id.
const behindAll = "\U0010FFFF"

// readPiece reads the next piece of a queue.
func (s queueStore) readPiece(ctx context.Context, l *queueReader) (err error) {
	l.rows, err = readRows(ctx, &s.readers, "list the queue", listing.ScanJob,
		`SELECT job_id, task, service, enqueued_at, turn, size, labels FROM task_queue
		WHERE service = ? AND (enqueued_at, turn, task, job_id) > (?, ?, ?, ?) ORDER BY enqueued_at, turn, task, job_id LIMIT ?`, l.service, l.at, l.turn, l.task, l.job, l.piece)
	l.more = len(l.rows) == l.piece
	l.piece *= 2
	if n := len(l.rows); n > 0 {
		last := &l.rows[n-1]
		l.at, l.turn, l.task, l.job = last.EnqueuedAt, last.Turn, last.Task, last.JobID
	}
	return err
}

// queueHeap is a heap of the readers that have rows, ordered by their next row.
type queueHeap []*queueReader

func (l queueHeap) Len() int { return len(l) }
func (l queueHeap) Less(i, j int) bool {
	a, b := &l[i].rows[0], &l[j].rows[0]
	return cmp.Or(cmp.Compare(a.EnqueuedAt, b.EnqueuedAt), cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Service, b.Service)) < 0
}
func (l queueHeap) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *queueHeap) Push(x any)   { *l = append(*l, x.(*queueReader)) }
func (l *queueHeap) Pop() any {
	old := *l
	last := old[len(old)-1]
	*l = old[:len(old)-1]
	return last
}

func (s queueStore) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return readRows(ctx, &s.readers, "list the queue", listing.ScanJob,
		`SELECT q.job_id, q.task, q.service, q.enqueued_at, q.turn, q.size, q.labels FROM task_queue q
		WHERE q.service = ?1 AND (q.enqueued_at, q.turn) > (?2, ?3)
		AND (q.labels IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(q.labels) WHERE value NOT IN (SELECT value FROM json_each(?4))))
		AND (?5 = '' OR (SELECT t.flow_id FROM tasks t WHERE t.id = q.task) = ?5)
		ORDER BY q.enqueued_at, q.turn LIMIT ?6`, f.Service, afterAt, afterTurn, *listing.AsJSON(f.Labels), f.FlowID, limit)
}

// QueueServices steps through the index from one service to the next.
func (s queueStore) QueueServices(ctx context.Context) ([]string, error) {
	return readRows(ctx, &s.readers, "list the queue", listing.ScanValue[string], `WITH RECURSIVE s (service) AS (
			SELECT min(service) FROM task_queue
			UNION ALL SELECT (SELECT min(service) FROM task_queue WHERE service > s.service) FROM s WHERE s.service IS NOT NULL)
		SELECT service FROM s WHERE service IS NOT NULL`)
}

func (s queueStore) QueueBefore(ctx context.Context, task, job string, most int) (int, error) {
	n, err := readFirst(ctx, s.readers.db, "count the queue", listing.ScanValue[int],
		`SELECT (SELECT count(*) FROM (SELECT 1 FROM task_queue q
			WHERE q.service = j.service AND (q.enqueued_at, q.turn) < (j.enqueued_at, j.turn) LIMIT ?3))
		FROM task_queue j WHERE j.task = ?1 AND j.job_id = ?2`, task, job, most)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

func (s queueStore) QueueDepth(ctx context.Context) (map[string]persistence.QueueStat, error) {
	list, err := readRows(ctx, &s.readers, "count the queue", listing.ScanDepth,
		"SELECT service, count(*), count(DISTINCT task), min(enqueued_at) FROM task_queue GROUP BY service")
	depth := map[string]persistence.QueueStat{}
	for _, q := range list {
		depth[q.Service] = q.QueueStat
	}
	return depth, err
}
