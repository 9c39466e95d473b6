package sqlite

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// Commit checks each commit before it writes anything of it, which is enough because nobody else
// writes meanwhile.
func (s *store) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers := make([]error, len(batch))
	err := s.write(ctx, "commit", func(t tx) error {
		if err := t.fence(incarnation); err != nil {
			return err
		}
		for i := range batch {
			err := t.commit(&batch[i])
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

func (t tx) commit(c *persistence.Commit) error {
	if err := t.row(c); err != nil {
		return err
	}
	if c.Columns != nil {
		if err := t.columns(c); err != nil {
			return err
		}
	}
	if err := t.snapshot(c); err != nil {
		return err
	}
	if c.Rest != nil {
		if err := t.rest(c.Task, *c.Rest); err != nil {
			return err
		}
	}
	if c.Permits != nil {
		if err := t.permits(c.Task, c.Permits); err != nil {
			return err
		}
	}
	if c.Externals != nil {
		if err := t.externals(c.Task, c.Externals); err != nil {
			return err
		}
	}
	if err := t.approvals(c.Approvals); err != nil {
		return err
	}
	return t.queue(c)
}

func (t tx) snapshot(c *persistence.Commit) (err error) {
	switch {
	case c.Checkpoint:
		_, err = t.exec("INSERT INTO checkpoints (task, seq, snapshot) VALUES (?, ?, ?)", c.Task, c.Seq, c.Snapshot)
	case c.Snapshot != nil:
		_, err = t.exec("UPDATE tasks SET snapshot = ?1, snapshot_seq = ?2 WHERE id = ?3 AND snapshot_seq <= ?2", c.Snapshot, c.Seq, c.Task)
	}
	return err
}

// row writes the journal's row, or finds why it cannot.
func (t tx) row(c *persistence.Commit) error {
	switch {
	case c.Create != nil:
		return t.create(c)
	case c.Events == nil:
		return t.atEnd(c.Task, c.Seq)
	}
	n, err := t.exec(`INSERT INTO task_events (task, seq, at, events)
		SELECT ?1, ?2, ?3, ?4 WHERE (SELECT max(seq) FROM task_events WHERE task = ?1) = ?2 - 1`,
		c.Task, c.Seq, c.At, c.Events)
	if err != nil || n == 1 {
		return err
	}
	if err := t.atEnd(c.Task, c.Seq-1); err != nil {
		return err
	}
	return persistence.ErrStale
}

func (t tx) create(c *persistence.Commit) error {
	if c.Seq != 1 || c.Events == nil {
		return persistence.ErrStale
	}
	n, err := t.exec(`INSERT INTO tasks (id, flow_id, version_id, status, cursor, last_action, error, paused, steps, followed,
			created_at, updated_at, ended_at, resting, body_hash, labels, snapshot_seq, params)
		SELECT ?1, ?2, ?3, 'pending', '', '', '', 0, 0, 0, ?4, ?5, 0, 0, ?6, ?7, 0, ?8
		WHERE EXISTS (SELECT 1 FROM flow_versions WHERE id = ?3) ON CONFLICT (id) DO NOTHING`,
		c.Task, c.Create.FlowID, c.Create.VersionID, c.Create.CreatedAt, c.At, c.Create.BodyHash, listing.Labels(c.Create.Labels), blob(c.Create.Params))
	if err != nil {
		return err
	}
	if n == 0 {
		return t.notCreated(c.Task)
	}
	for key, value := range c.Create.Labels {
		_, err := t.exec("INSERT INTO task_labels (key, value, created_at, task) VALUES (?, ?, ?, ?)", key, value, c.Create.CreatedAt, c.Task)
		if err != nil {
			return err
		}
	}
	_, err = t.exec("INSERT INTO task_events (task, seq, at, events) VALUES (?, 1, ?, ?)", c.Task, c.At, c.Events)
	return err
}

// notCreated says why a task could not begin.
func (t tx) notCreated(task string) error {
	var one int
	err := t.one("SELECT 1 FROM tasks WHERE id = ?", []any{task}, &one)
	switch {
	case isNone(err):
		return persistence.ErrNoVersion
	case err != nil:
		return err
	}
	return persistence.ErrExists
}

// atEnd says whether a task's journal ends with a sequence number.
func (t tx) atEnd(task string, seq int64) error {
	var last *int64
	if err := t.one("SELECT max(seq) FROM task_events WHERE task = ?", []any{task}, &last); err != nil {
		return err
	}
	switch {
	case last == nil:
		return persistence.ErrUnknown
	case *last != seq:
		return persistence.ErrStale
	}
	return nil
}

func (t tx) columns(c *persistence.Commit) error {
	_, err := t.exec(`UPDATE tasks SET status = ?, cursor = ?, last_action = ?, error = ?, paused = ?, steps = ?, followed = ?, ended_at = ?, updated_at = ?,
		waits = ?, wait = ? WHERE id = ?`, c.Columns.Status, listing.Text(c.Columns.Cursor), listing.Text(c.Columns.LastAction), listing.Text(c.Columns.Error),
		c.Columns.Paused, c.Columns.Steps, c.Columns.Followed, c.Columns.EndedAt, c.At, int64(c.Columns.Waits), listing.Wait(c.Columns.Wait), c.Task)
	return err
}

func (t tx) rest(task string, r persistence.Rest) error {
	if _, err := t.exec("UPDATE tasks SET resting = ? WHERE id = ?", r.Resting, task); err != nil {
		return err
	}
	var err error
	if r.Resting && r.Due != 0 {
		_, err = t.exec("INSERT INTO wakes (task, due) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET due = excluded.due", task, r.Due)
	} else {
		_, err = t.exec("DELETE FROM wakes WHERE task = ?", task)
	}
	return err
}

func (t tx) queue(c *persistence.Commit) error {
	for _, q := range c.Enqueue {
		_, err := t.exec("INSERT INTO task_queue (task, job_id, service, enqueued_at, turn, size, labels) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			c.Task, q.JobID, q.Service, q.EnqueuedAt, q.Turn, q.Size, listing.ListOfLabels(q.Labels))
		if err != nil {
			return err
		}
	}
	for _, job := range c.Dequeue {
		if _, err := t.exec("DELETE FROM task_queue WHERE task = ? AND job_id = ?", c.Task, job); err != nil {
			return err
		}
	}
	return nil
}
