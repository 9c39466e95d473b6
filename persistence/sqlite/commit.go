package sqlite

import (
	"cmp"
	"context"
	"errors"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// Commit checks each commit before writing it. No further check is needed, because no other
// connection writes at the same time.
func (s journalStore) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers := make([]error, len(batch))
	err := s.inTransaction(ctx, "commit", func(t writeTx) error {
		if err := t.checkFence(incarnation); err != nil {
			return err
		}
		if err := t.lookUpAll(batch); err != nil {
			return err
		}
		for i := range batch {
			err := t.writeCommit(&batch[i])
			if err != nil && !isAnswer(err) {
				return err
			}
			answers[i] = err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func isAnswer(err error) bool {
	return errors.Is(err, persistence.ErrStale) || errors.Is(err, persistence.ErrUnknown) || errors.Is(err, persistence.ErrExists) ||
		errors.Is(err, persistence.ErrNoVersion)
}

func (t writeTx) writeCommit(c *persistence.Commit) error {
	j, err := t.writeRow(c)
	if err != nil {
		return err
	}
	if c.Columns != nil && c.Create == nil {
		if err := t.updateColumns(j, c); err != nil {
			return err
		}
	}
	if err := t.writeSnapshot(j.n, c); err != nil {
		return err
	}
	if c.Rest != nil {
		if err := t.writeRest(j.n, c.Task, *c.Rest); err != nil {
			return err
		}
	}
	if c.Permits != nil {
		if err := t.writePermits(c.Task, c.Permits); err != nil {
			return err
		}
	}
	if c.Externals != nil {
		if err := t.writeExternals(c.Task, c.Externals); err != nil {
			return err
		}
	}
	if err := t.writeApprovals(c.Approvals); err != nil {
		return err
	}
	return t.writeQueue(c)
}

func (t writeTx) writeSnapshot(n int64, c *persistence.Commit) (err error) {
	switch {
	case c.Checkpoint:
		return t.writeCheckpoint(c)
	case c.Snapshot != nil:
		_, err = t.execCount("UPDATE tasks SET snapshot = ?1, snapshot_seq = ?2 WHERE n = ?3 "+
			"AND snapshot_seq <= ?2", c.Snapshot.Bytes(), c.Seq, n)
	}
	return err
}

// writeRow writes the row of the journal and returns the end of the journal. It returns the reason
// if the row cannot be written.
func (t writeTx) writeRow(c *persistence.Commit) (*journalEnd, error) {
	if c.Create != nil {
		return t.createTask(c)
	}
	j, err := t.findJournal(c.Task)
	switch {
	case err != nil:
		return nil, err
	case c.Events == nil && j.last != c.Seq, c.Events != nil && j.last != c.Seq-1:
		return nil, persistence.ErrStale
	case c.Events == nil:
		return j, nil
	}
	_, err = t.execCount("INSERT INTO task_events (task, seq, at, events) VALUES (?, ?, ?, ?)", j.n, c.Seq, c.At, c.Events)
	j.last = c.Seq // if the transaction fails, the cached ends are dropped
	return j, err
}

func (t writeTx) createTask(c *persistence.Commit) (*journalEnd, error) {
	if c.Seq != 1 || c.Events == nil {
		return nil, persistence.ErrStale
	}
	args := append(columnsOf(c), c.Task, c.Create.FlowID, c.Create.VersionID, c.Create.CreatedAt,
		c.Create.BodyHash, listing.Labels(c.Create.Labels), nullableBytes(c.Create.Params))
	result, err := t.execPrepared(
		`INSERT INTO tasks (status, cursor, last_action, error, paused, steps, followed, ended_at, updated_at, waits, wait,
			id, flow_id, version_id, created_at, resting, body_hash, labels, snapshot_seq, params)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, ?16, ?17, 0, ?18
		WHERE EXISTS (SELECT 1 FROM flow_versions WHERE id = ?14) ON CONFLICT (id) DO NOTHING`, args...)
	if err != nil {
		return nil, err
	}
	if written, err := result.RowsAffected(); err != nil || written == 0 {
		return nil, cmp.Or(err, t.notCreated(c.Task))
	}
	n, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	if err := t.writeLabels(c); err != nil {
		return nil, err
	}
	_, err = t.execCount("INSERT INTO task_events (task, seq, at, events) VALUES (?, 1, ?, ?)", n, c.At, c.Events)
	j := &journalEnd{n, 1, len(c.Create.Labels) > 0}
	t.cacheEnd(c.Task, j)
	return j, err
}

// writeLabels writes the labels of a new task.
func (t writeTx) writeLabels(c *persistence.Commit) error {
	for key, value := range c.Create.Labels {
		_, err := t.execCount("INSERT INTO task_labels (key, value, created_at, task, status) "+
			"VALUES (?, ?, ?, ?, ?)", key, value, c.Create.CreatedAt, c.Task, columnsOf(c)[0])
		if err != nil {
			return err
		}
	}
	return nil
}

// notCreated returns the reason why a new task could not be written.
func (t writeTx) notCreated(task string) error {
	var one int
	err := t.queryOne("SELECT 1 FROM tasks WHERE id = ?", []any{task}, &one)
	switch {
	case isNone(err):
		return persistence.ErrNoVersion
	case err != nil:
		return err
	}
	return persistence.ErrExists
}

// columnsOf returns the values of a task's listing columns. A new task without columns is pending.
func columnsOf(c *persistence.Commit) []any {
	x := cmp.Or(c.Columns, &persistence.Columns{Status: "pending"})
	return []any{x.Status, persistence.CleanText(x.Cursor), persistence.CleanText(x.LastAction),
		persistence.CleanText(x.Error), x.Paused, x.Steps, x.Followed, x.EndedAt, c.At,
		int64(x.Waits), listing.Wait(x.Wait)}
}

func (t writeTx) updateColumns(j *journalEnd, c *persistence.Commit) error {
	_, err := t.execCount(
		`UPDATE tasks SET status = ?, cursor = ?, last_action = ?, error = ?, paused = ?, steps = ?, followed = ?, ended_at = ?, updated_at = ?,
		waits = ?, wait = ? WHERE n = ?`, append(columnsOf(c), j.n)...)
	if err != nil || !j.labeled {
		return err
	}
	_, err = t.execCount("UPDATE task_labels SET status = ?1 WHERE task = ?2 AND status <> ?1", c.Columns.Status, c.Task)
	return err
}

func (t writeTx) writeRest(n int64, task string, r persistence.Rest) error {
	if _, err := t.execCount("UPDATE tasks SET resting = ? WHERE n = ?", r.Resting, n); err != nil {
		return err
	}
	var err error
	if r.Resting && r.Due != 0 {
		_, err = t.execCount("INSERT INTO wakes (task, due) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET due = excluded.due", task, r.Due)
	} else {
		_, err = t.execCount("DELETE FROM wakes WHERE task = ?", task)
	}
	return err
}

func (t writeTx) writeQueue(c *persistence.Commit) error {
	for _, q := range c.Enqueue {
		_, err := t.execCount("INSERT INTO task_queue (task, job_id, service, enqueued_at, "+
			"turn, size, labels) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			c.Task, q.JobID, q.Service, q.EnqueuedAt, q.Turn, q.Size, listing.ListOfLabels(q.Labels))
		if err != nil {
			return err
		}
	}
	for _, job := range c.Dequeue {
		if _, err := t.execCount("DELETE FROM task_queue WHERE task = ? AND job_id = ?", c.Task, job); err != nil {
			return err
		}
	}
	return nil
}
