package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
	"github.com/troupe-engine/troupe/persistence/internal/parts"
)

// inParts reports whether a commit has a checkpoint that is too large for one row.
func inParts(c persistence.Commit) bool { return c.Checkpoint && c.Snapshot.Len() > parts.Size }

// writeParts writes the remaining parts of the checkpoints of a batch, in the transaction of the
// batch.
func (b *batchWriter) writeParts(ctx context.Context, batch []persistence.Commit, answers []error) error {
	for i, c := range batch {
		if !inParts(c) || answers[i] != nil {
			continue
		}
		for n, part := range parts.Of(c.Snapshot) {
			if n == 0 {
				continue
			}
			_, err := b.conn.Exec(ctx, b.store.schema.qualify(
				"INSERT INTO troupe.checkpoints (task, seq, part, size, snapshot) VALUES ($1, "+
					"$2, $3, 0, $4)"), c.Task, c.Seq, n, part)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// completeCheckpoints reads the remaining parts of checkpoints. It removes the snapshot of a task
// that was deleted meanwhile.
func (s journalStore) completeCheckpoints(ctx context.Context, found []persistence.Record, sizes []int64) (err error) {
	for i := range found {
		r := &found[i]
		if r.Snapshot == nil || sizes[i] == 0 {
			continue
		}
		r.Snapshot, err = s.readParts(ctx, r.ID, r.SnapshotSeq, r.Snapshot, sizes[i])
		if errors.Is(err, persistence.ErrNotFound) {
			r.Snapshot, err = nil, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s journalStore) readParts(ctx context.Context, task string, seq int64, first []byte, size int64) ([]byte, error) {
	return parts.Join[pgtype.DriverBytes](first, size, func(scan func(listing.Row, *struct{}) error) error {
		_, err := readRows(ctx, s.database, "read a checkpoint", scan,
			"SELECT snapshot FROM troupe.checkpoints WHERE task = $1 AND seq = $2 AND part > 0 "+
				"ORDER BY part", task, seq)
		return err
	})
}

// Checkpoint reads all parts of a checkpoint.
func (s journalStore) Checkpoint(ctx context.Context, task string, seq int64) ([]byte, error) {
	h, err := findByKey(ctx, s.database, "read a checkpoint", parts.ScanHead,
		"SELECT size, snapshot FROM troupe.checkpoints WHERE task = $1 AND seq = $2 AND part = 0", task, seq)
	if err != nil {
		return nil, err
	}
	return s.readParts(ctx, task, seq, h.First, h.Size)
}
