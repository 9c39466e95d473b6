package sqlite

import (
	"context"
	"database/sql"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
	"github.com/troupe-engine/troupe/persistence/internal/parts"
)

const (
	addPart         = "INSERT INTO checkpoints (task, seq, part, size, snapshot) VALUES (?, ?, ?, ?, ?)"
	partsQuery      = "SELECT snapshot FROM checkpoints WHERE task = ? AND seq = ? AND part > 0 ORDER BY part"
	checkpointQuery = "SELECT size, snapshot FROM checkpoints WHERE task = ? AND seq = ? AND part = 0"
)

func (t writeTx) writeCheckpoint(c *persistence.Commit) error {
	size := c.Snapshot.Len()
	for n, part := range parts.Of(c.Snapshot) {
		if _, err := t.execCount(addPart, c.Task, c.Seq, n, size, part); err != nil {
			return err
		}
		size = 0
	}
	return nil
}

// restOf returns the whole checkpoint that begins with the part first. from is the transaction that
// read the first part, or the pool.
func restOf(ctx context.Context, from querier, task string, seq int64, first []byte, size int64) ([]byte, error) {
	return parts.Join[sql.RawBytes](first, size, func(scan func(listing.Row, *struct{}) error) error {
		_, err := readRows(ctx, from, "read a checkpoint", scan, partsQuery, task, seq)
		return err
	})
}

// Checkpoint reads all parts of a checkpoint.
func (s journalStore) Checkpoint(ctx context.Context, task string, seq int64) ([]byte, error) {
	h, err := readFirst(ctx, &s.readers, "read a checkpoint", parts.ScanHead, checkpointQuery, task, seq)
	if err != nil {
		return nil, err
	}
	return restOf(ctx, &s.readers, task, seq, h.First, h.Size)
}
