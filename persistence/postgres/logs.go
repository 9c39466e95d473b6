package postgres

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// logStore stores the output of attempts.
type logStore struct{ *database }

// The statements of AppendLog. A lock per task serializes concurrent appends, so chunk numbers of a
// task become visible in order. Tasks that are being deleted count as unknown. Other tasks are not
// deleted before their chunks are stored.
const (
	lockLogs = "SELECT pg_advisory_xact_lock(lock) FROM (SELECT DISTINCT hashtextextended(id, " +
		"$1) AS lock FROM unnest($2::text[]) t (id) ORDER BY lock) t"

	logTasks = `SELECT t.id, coalesce((SELECT max(n) FROM troupe.task_logs WHERE task = t.id), 0)
		FROM (SELECT id FROM troupe.tasks WHERE id = ANY($1) ORDER BY id FOR KEY SHARE SKIP LOCKED) t`

	logSources = `SELECT j.id, j.source, l.chars, l.lines,
			coalesce((SELECT number FROM troupe.task_logs WHERE job = j.job AND source = j.source ORDER BY n DESC LIMIT 1), 0)
		FROM unnest($1::text[], $2::text[], $3::text[]) j (id, job, source),
			LATERAL (SELECT chars, lines FROM troupe.task_logs WHERE job = j.job ORDER BY n DESC LIMIT 1) l`

	addLogs = `INSERT INTO troupe.task_logs (task, n, job, source, number, chars_before, lines_before, chars, lines, content, long_job)
		SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bytea[], $11::text[])`

	cutLog = `DELETE FROM troupe.task_logs WHERE job = $1 AND n < coalesce(
		(SELECT n FROM troupe.task_logs WHERE job = $1 AND chars_before >= $2 ORDER BY n LIMIT 1),
		(SELECT n FROM troupe.task_logs WHERE job = $1 ORDER BY n DESC LIMIT 1))`
)

func (s logStore) AppendLog(ctx context.Context, chunks []persistence.LogChunk, keep int) error {
	chunks = slices.DeleteFunc(slices.Clone(chunks), func(c persistence.LogChunk) bool {
		// no task with such texts can be stored
		return !flow.IsText(c.Task) || !flow.IsText(c.Job) || !flow.IsText(c.Source)
	})
	if len(chunks) == 0 {
		return nil
	}
	return wrapError("append to logs", s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			tails, err := s.logTails(ctx, tx, chunks)
			if err != nil {
				return err
			}
			return s.addLogs(ctx, tx, tails, chunks, keep)
		})
	}))
}

func (s logStore) logTails(ctx context.Context, tx pgx.Tx, chunks []persistence.LogChunk) (*persistence.LogTails, error) {
	t := &persistence.LogTails{Tasks: map[string]int64{}, Jobs: map[string]persistence.LogSize{},
		Sources: map[persistence.LogSource]int64{}}
	tasks, ids, jobs, sources := make([]string, len(chunks)), make([]string, len(chunks)),
		make([]string, len(chunks)), make([]string, len(chunks))
	for i, c := range chunks {
		tasks[i], ids[i], sources[i] = c.Task, c.Job, c.Source
		jobs[i], _ = indexKey(c.Job)
	}
	var batch pgx.Batch
	batch.Queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true)", strconv.FormatInt(frozen.Milliseconds(), 10))
	batch.Queue(lockLogs, s.schema.lockID("logs"), tasks)
	batch.Queue(logTasks, tasks).Query(func(rows pgx.Rows) error {
		var task string
		var last int64
		_, err := pgx.ForEachRow(rows, []any{&task, &last}, func() error {
			t.Tasks[task] = last
			return nil
		})
		return err
	})
	batch.Queue(logSources, ids, jobs, sources).Query(func(rows pgx.Rows) error {
		var at persistence.LogSource
		var size persistence.LogSize
		var number int64
		_, err := pgx.ForEachRow(rows, []any{&at.Job, &at.Source, &size.Chars, &size.Lines, &number}, func() error {
			t.Jobs[at.Job], t.Sources[at] = size, number
			return nil
		})
		return err
	})
	return t, tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

func (s logStore) addLogs(ctx context.Context, tx pgx.Tx, t *persistence.LogTails, chunks []persistence.LogChunk, keep int) error {
	rows := t.Add(chunks)
	if len(rows) == 0 {
		return nil
	}
	var batch pgx.Batch
	batch.Queue(addLogs, logColumns(rows)...)
	grown := map[string]bool{}
	for _, r := range rows {
		grown[r.Job] = true
	}
	for _, job := range slices.Sorted(maps.Keys(grown)) {
		if chars := t.Cut(job, keep); chars > 0 {
			key, _ := indexKey(job)
			batch.Queue(cutLog, key, chars)
		}
	}
	return tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

func logColumns(rows []persistence.LogRow) []any {
	of := func(value func(r *persistence.LogRow) int64) []int64 {
		list := make([]int64, len(rows))
		for i := range rows {
			list[i] = value(&rows[i])
		}
		return list
	}
	texts := func(value func(r *persistence.LogRow) string) []string {
		list := make([]string, len(rows))
		for i := range rows {
			list[i] = value(&rows[i])
		}
		return list
	}
	contents, jobs, long := make([][]byte, len(rows)), make([]string, len(rows)), make([]*string, len(rows))
	for i := range rows {
		contents[i] = rows[i].Content
		key, whole := indexKey(rows[i].Job)
		if jobs[i] = key; whole != "" {
			long[i] = &whole
		}
	}
	return []any{texts(func(r *persistence.LogRow) string { return r.Task }), of(func(r *persistence.LogRow) int64 { return r.N }),
		jobs, texts(func(r *persistence.LogRow) string { return r.Source }),
		of(func(r *persistence.LogRow) int64 { return r.Number }),
		of(func(r *persistence.LogRow) int64 { return r.Before.Chars }), of(func(r *persistence.LogRow) int64 { return r.Before.Lines }),
		of(func(r *persistence.LogRow) int64 { return r.After.Chars }),
		of(func(r *persistence.LogRow) int64 { return r.After.Lines }), contents, long}
}

var logColumnsRead = strings.Replace(listing.LogColumns, "l.job", "coalesce(l.long_job, l.job)", 1)

func (s logStore) ReadLog(ctx context.Context, f persistence.LogFilter) ([]persistence.LogPart, error) {
	const oldest = ", NOT EXISTS (SELECT FROM troupe.task_logs p WHERE p.job = l.job AND p.n < l.n) FROM troupe.task_logs l WHERE "
	where, key := "l.task = $1", f.Task
	if f.Job != "" {
		where = "l.job = $1"
		key, _ = indexKey(f.Job)
	}
	if !flow.IsText(key) {
		return nil, nil
	}
	list, err := readPage(ctx, s.database, "read a log", listing.ScanLog,
		"SELECT "+logColumnsRead+oldest+where+" AND l.n > $2 ORDER BY l.n LIMIT $3", key, f.After, f.Limit)
	return listing.LogParts(list), err
}
