package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// externalStore reads external work.
type externalStore struct{ *database }

// writeExternals applies the changes of a commit to externals.
func (t writeTx) writeExternals(task string, c *persistence.ExternalChanges) error {
	for _, r := range c.Tracked(task) {
		_, err := t.execCount(`INSERT INTO externals (task, job, n, service, id, data, `+
			`started_at, next_at, pending, recalled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON `+
			`CONFLICT DO NOTHING`,
			r.Task, r.Job, r.Index, r.Service, r.ID, nullableBytes(r.Data), r.StartedAt, r.NextAt, r.Pending, r.Recalled)
		if err != nil {
			return err
		}
	}
	for _, id := range c.Untrack {
		if _, err := t.execCount(forgetExternal, id.Task, id.Job, id.Index); err != nil {
			return err
		}
	}
	for _, id := range c.Recall {
		if _, err := t.execCount("UPDATE externals SET recalled = 1, next_at = 0, failures = 0 "+
			"WHERE task = ? AND job = ? AND n = ?", id.Task, id.Job, id.Index); err != nil {
			return err
		}
	}
	return nil
}

const forgetExternal = "DELETE FROM externals WHERE task = ? AND job = ? AND n = ?"

// NextExternals has no shards in its statement, because the only member owns all of them.
func (s externalStore) NextExternals(ctx context.Context, shards persistence.ShardSet,
	limit int) (list []persistence.ExternalRow, err error) {
	for page := limit; ; page *= 2 {
		rows, err := readRows(ctx, &s.readers, "list work outside", listing.ScanExternal,
			"SELECT "+listing.ExternalColumns+" FROM externals ORDER BY next_at, task, job, n LIMIT ?", page)
		if err != nil {
			return nil, err
		}
		list = list[:0]
		for i := range rows {
			if shards.Has(rows[i].Task) && len(list) < limit {
				list = append(list, rows[i])
			}
		}
		if len(list) == limit || len(rows) < page {
			return list, nil
		}
	}
}

func (s externalStore) ExternalsOf(ctx context.Context, task string) ([]persistence.ExternalRow, error) {
	return readRows(ctx, &s.readers, "list work outside", listing.ScanExternal,
		"SELECT "+listing.ExternalColumns+" FROM externals WHERE task = ? ORDER BY job, n", task)
}

func (s externalStore) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	return s.inTransaction(ctx, "note work outside", func(t writeTx) error {
		if err := t.checkFence(incarnation); err != nil {
			return err
		}
		for i := range notes {
			if err := t.noteExternal(&notes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t writeTx) noteExternal(n *persistence.ExternalNote) (err error) {
	if n.Gone {
		_, err = t.execCount(forgetExternal, n.Task, n.Job, n.Index)
		return err
	}
	_, err = t.execCount("UPDATE externals SET next_at = ?, polls = ?, failures = ?, failing_at "+
		"= ?, memo = ?, pending = ? WHERE task = ? AND job = ? AND n = ? AND recalled = ?",
		n.NextAt, n.Polls, n.Failures, n.FailingAt, nullableBytes(n.Memo), n.Pending, n.Task, n.Job, n.Index, n.Recalled)
	return err
}
