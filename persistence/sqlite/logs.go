package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// logStore keeps the output of attempts.
type logStore struct{ *database }

func (s logStore) AppendLog(ctx context.Context, chunks []persistence.LogChunk, keep int) error {
	return s.inTransaction(ctx, "append to logs", func(t writeTx) error {
		tails, err := t.logTails(chunks)
		if err != nil {
			return err
		}
		grown := map[string]bool{}
		for _, r := range tails.Add(chunks) {
			if _, err := t.execCount("INSERT INTO task_logs (task, n, job, source, number, "+
				"chars_before, lines_before, chars, lines, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				r.Task, r.N, r.Job, r.Source, r.Number, r.Before.Chars, r.Before.Lines,
				r.After.Chars, r.After.Lines, r.Content); err != nil {
				return err
			}
			grown[r.Job] = true
		}
		for job := range grown {
			if err := t.cutLog(job, tails.Cut(job, keep)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t writeTx) logTails(chunks []persistence.LogChunk) (persistence.LogTails, error) {
	tails := persistence.LogTails{Tasks: map[string]int64{}, Jobs: map[string]persistence.LogSize{},
		Sources: map[persistence.LogSource]int64{}}
	for i := range chunks {
		if err := t.logTail(&tails, &chunks[i]); err != nil {
			return tails, err
		}
	}
	return tails, nil
}

func (t writeTx) logTail(tails *persistence.LogTails, c *persistence.LogChunk) error {
	if _, known := tails.Tasks[c.Task]; !known {
		var last int64
		err := t.queryOne("SELECT coalesce((SELECT max(n) FROM task_logs WHERE task = t.id), 0) "+
			"FROM tasks t WHERE id = ?", []any{c.Task}, &last)
		if isNone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		tails.Tasks[c.Task] = last
	}
	source := persistence.LogSource{Job: c.Job, Source: c.Source}
	if _, known := tails.Sources[source]; known {
		return nil
	}
	var size persistence.LogSize
	var number int64
	err := t.queryOne("SELECT chars, lines FROM task_logs WHERE job = ? ORDER BY n DESC LIMIT 1", []any{c.Job}, &size.Chars, &size.Lines)
	if err == nil {
		err = t.queryOne("SELECT number FROM task_logs WHERE job = ? AND source = ? ORDER BY n "+
			"DESC LIMIT 1", []any{c.Job, c.Source}, &number)
	}
	if err != nil && !isNone(err) {
		return err
	}
	tails.Jobs[c.Job], tails.Sources[source] = size, number
	return nil
}

// cutLog deletes the chunks of an attempt that begin within its first chars characters, except the
// last chunk.
func (t writeTx) cutLog(job string, chars int64) error {
	if chars == 0 {
		return nil
	}
	_, err := t.execCount(`DELETE FROM task_logs WHERE job = ?1 AND n < coalesce(
			(SELECT n FROM task_logs WHERE job = ?1 AND chars_before >= ?2 ORDER BY n LIMIT 1),
			(SELECT n FROM task_logs WHERE job = ?1 ORDER BY n DESC LIMIT 1))`, job, chars)
	return err
}

func (s logStore) ReadLog(ctx context.Context, f persistence.LogFilter) ([]persistence.LogPart, error) {
	const oldest = ", NOT EXISTS (SELECT 1 FROM task_logs p WHERE p.job = l.job AND p.n < l.n) FROM task_logs l WHERE "
	where, key := "l.task = ?", f.Task
	if f.Job != "" {
		where, key = "l.job = ?", f.Job
	}
	list, err := readRows(ctx, &s.readers, "read a log", listing.ScanLog,
		"SELECT "+listing.LogColumns+oldest+where+" AND l.n > ? ORDER BY l.n LIMIT ?", key, f.After, f.Limit)
	return listing.LogParts(list), err
}
