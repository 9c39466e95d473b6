package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// streamStore stores the values that steps write to streams.
type streamStore struct{ *database }

// The statements of AppendStreams. As in AppendLog, a lock serializes concurrent appends to a task,
// and tasks that are being deleted count as unknown.
const (
	streamSizes = `SELECT t.id, coalesce(s.name, ''), coalesce(s.length, 0), coalesce(s.bytes, 0), coalesce(s.ended, false)
		FROM (SELECT id FROM troupe.tasks WHERE id = ANY($1) ORDER BY id FOR KEY SHARE SKIP LOCKED) t
		LEFT JOIN troupe.task_streams s ON s.task = t.id`

	streamSources = `SELECT w.task, w.name, w.source, v.number
		FROM unnest($1::text[], $2::text[], $3::text[]) w (task, name, source),
			LATERAL (SELECT number FROM troupe.stream_values
				WHERE task = w.task AND name = w.name AND source = w.source ORDER BY number DESC LIMIT 1) v`

	addStreamRow = "INSERT INTO troupe.stream_values (" + listing.StreamColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"

	setStreamSize = "INSERT INTO troupe.task_streams (task, " + listing.StreamSizeColumns + ") VALUES ($1, $2, $3, $4, $5) " +
		"ON CONFLICT (task, name) DO UPDATE SET length = excluded.length, bytes = excluded.bytes, ended = excluded.ended"
)

func (s streamStore) AppendStreams(ctx context.Context, writes []persistence.StreamWrite,
	most persistence.StreamLimits) (errs []error, err error) {
	err = s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			tails, err := s.streamTails(ctx, tx, writes)
			if err != nil {
				return err
			}
			var rows []persistence.StreamRow
			rows, errs = tails.Add(writes, most)
			return s.addStreamRows(ctx, tx, rows, tails.ChangedStreams())
		})
	})
	return errs, wrapError("append to streams", err)
}

func (s streamStore) streamTails(ctx context.Context, tx pgx.Tx, writes []persistence.StreamWrite) (*persistence.StreamTails, error) {
	t := persistence.NewStreamTails()
	var tasks, names, sources []string
	for i := range writes {
		if w := &writes[i]; flow.IsText(w.Task) && flow.IsText(w.Name) && flow.IsText(w.Source) {
			tasks, names, sources = append(tasks, w.Task), append(names, w.Name), append(sources, w.Source)
		}
	}
	var batch pgx.Batch
	batch.Queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true)", strconv.FormatInt(frozen.Milliseconds(), 10))
	batch.Queue(onlyIndexes)
	batch.Queue(lockLogs, s.schema.lockID("streams"), tasks)
	batch.Queue(streamSizes, tasks).Query(func(rows pgx.Rows) error {
		var task string
		var size persistence.StreamSize
		_, err := pgx.ForEachRow(rows, []any{&task, &size.Name, &size.Length, &size.Bytes, &size.Ended}, func() error {
			t.AddTask(task)
			if size.Name != "" {
				stored := size
				t.Tasks[task][size.Name] = &stored
			}
			return nil
		})
		return err
	})
	batch.Queue(streamSources, tasks, names, sources).Query(func(rows pgx.Rows) error {
		var at persistence.StreamSource
		var number int64
		_, err := pgx.ForEachRow(rows, []any{&at.Task, &at.Name, &at.Source, &number}, func() error {
			t.Sources[at] = number
			return nil
		})
		return err
	})
	return t, tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

func (s streamStore) addStreamRows(ctx context.Context, tx pgx.Tx, rows []persistence.StreamRow,
	changed []persistence.ChangedStream) error {
	if len(changed) == 0 {
		return nil
	}
	var batch pgx.Batch
	for i := range rows {
		r := &rows[i]
		batch.Queue(addStreamRow, r.Task, r.Name, r.First, r.Last, r.Job, r.Step, r.Try, r.Source, r.Number, r.At, r.Content)
	}
	for _, c := range changed {
		batch.Queue(setStreamSize, c.Task, c.Name, c.Length, c.Bytes, c.Ended)
	}
	return tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}

func (s streamStore) ReadStream(ctx context.Context, f persistence.StreamFilter) ([]persistence.StreamRow, error) {
	if !flow.IsText(f.Task) || !flow.IsText(f.Name) {
		return nil, nil
	}
	return readPage(ctx, s.database, "read a stream", listing.ScanStream, "SELECT "+listing.StreamColumns+
		" FROM troupe.stream_values WHERE task = $1 AND name = $2 AND last >= $3 ORDER BY last LIMIT $4", f.Task, f.Name, f.From, f.Limit)
}

func (s streamStore) StreamSizes(ctx context.Context, task string) ([]persistence.StreamSize, error) {
	if !flow.IsText(task) {
		return nil, nil
	}
	return readPage(ctx, s.database, "list streams", listing.ScanStreamSize,
		"SELECT "+listing.StreamSizeColumns+" FROM troupe.task_streams WHERE task = $1 ORDER BY name", task)
}
