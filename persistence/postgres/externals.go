package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// externalStore reads external work.
type externalStore struct{ *database }

// addExternals adds the changes of a commit to externals. It skips externals that the same commit
// both tracks and untracks.
func (p *packedBatch) addExternals(c *persistence.Commit) {
	tracks := map[persistence.ExternalID]bool{}
	for _, r := range c.Externals.Tracked(c.Task) {
		tracks[r.Key()] = true
		p.lists[tracked].addExternal(c, &r)
	}
	for _, id := range c.Externals.Untrack {
		p.lists[untracks].externalID(id)
	}
	for _, id := range c.Externals.Recall {
		if !tracks[id] {
			p.lists[recalls].externalID(id)
		}
	}
}

func (l *rowArray) addExternal(c *persistence.Commit, r *persistence.ExternalRow) {
	job, long := indexKey(r.Job)
	l.beginRow(13)
	l.putText(r.Task)
	l.putBool(c.Create != nil)
	l.putText(job)
	l.putNumber(int64(r.Index))
	l.putNumber(int64(persistence.ShardOf(r.Task)))
	l.putText(r.Service)
	l.putText(r.ID)
	l.putBytes(r.Data)
	l.putNumber(r.StartedAt)
	l.putNumber(r.NextAt)
	l.putBool(r.Pending)
	l.putBool(r.Recalled)
	l.putLongID(long)
	l.endRow()
}

func (l *rowArray) externalID(id persistence.ExternalID) {
	l.beginRow(3)
	l.putText(id.Task)
	job, _ := indexKey(id.Job)
	l.putText(job)
	l.putNumber(int64(id.Index))
	l.endRow()
}

var externalColumns = strings.Replace(listing.ExternalColumns, "job", "coalesce(long_job, job)", 1)

func (s externalStore) NextExternals(ctx context.Context, shards persistence.ShardSet, limit int) ([]persistence.ExternalRow, error) {
	return readPage(ctx, s.database, "list work outside", listing.ScanExternal,
		"SELECT "+externalColumns+" FROM troupe.externals WHERE"+ofShards+
			"ORDER BY next_at, task, job, n LIMIT $2", shardBits(shards), limit)
}

func (s externalStore) ExternalsOf(ctx context.Context, task string) ([]persistence.ExternalRow, error) {
	return readRows(ctx, s.database, "list work outside", listing.ScanExternal,
		"SELECT "+externalColumns+" FROM troupe.externals WHERE task = $1 ORDER BY job, n", task)
}

// mayNote fails with a division by zero if the member may not write, which aborts the whole
// transaction. A fence waits until the transaction has ended.
const mayNote = "SELECT 1 / count(*) FROM (" + lockMember + "SHARE) AS living"

// NoteExternals writes all notes with one statement, and deletes the externals that are gone with
// another.
func (s externalStore) NoteExternals(ctx context.Context, incarnation string, notes []persistence.ExternalNote) error {
	var gone, kept noteColumns
	for i := range notes {
		if notes[i].Gone {
			gone.addNote(&notes[i])
		} else {
			kept.addNote(&notes[i])
		}
	}
	var batch pgx.Batch
	batch.Queue(mayNote, incarnation)
	if len(gone.tasks) > 0 {
		batch.Queue(`DELETE FROM troupe.externals e USING unnest($1::text[], $2::text[], $3::int[]) AS d (task, job, n)
			WHERE e.task = d.task AND e.job = d.job AND e.n = d.n`, gone.tasks, gone.jobs, gone.indexes)
	}
	if len(kept.tasks) > 0 {
		batch.Queue(
			`UPDATE troupe.externals e SET next_at = d.next_at, polls = d.polls, failures = d.failures, failing_at = d.failing_at, memo = d.memo, pending = d.pending
			FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::int[], $6::int[], $7::bigint[], $8::bytea[], $9::boolean[], $10::boolean[]) AS d (task, job, n, next_at, polls, failures, failing_at, memo, pending, recalled)
			WHERE e.task = d.task AND e.job = d.job AND e.n = d.n AND e.recalled = d.recalled`,
			kept.tasks, kept.jobs, kept.indexes, kept.next, kept.polls, kept.failures, kept.failing,
			kept.memos, kept.pending, kept.recalled)
	}
	err := s.inOne(ctx, s.pool, &batch)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == divisionByZero {
		return persistence.ErrFenced
	}
	return wrapError("note work outside", err)
}

// noteColumns holds notes as columns.
type noteColumns struct {
	tasks, jobs     []string
	indexes         []int
	next, failing   []int64
	polls, failures []int
	memos           [][]byte
	pending         []bool
	recalled        []bool
}

func (c *noteColumns) addNote(n *persistence.ExternalNote) {
	job, _ := indexKey(n.Job)
	c.tasks, c.jobs, c.indexes = append(c.tasks, n.Task), append(c.jobs, job), append(c.indexes, n.Index)
	c.next, c.polls, c.failures, c.failing, c.memos = append(c.next, n.NextAt),
		append(c.polls, n.Polls), append(c.failures, n.Failures), append(c.failing, n.FailingAt),
		append(c.memos, n.Memo)
	c.pending, c.recalled = append(c.pending, n.Pending), append(c.recalled, n.Recalled)
}
