package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
)

// Commit first sends one statement that writes the whole batch or nothing. Only if nothing was
// written, it tries the commits in smaller groups.
func (s journalStore) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers := make([]error, len(batch))
	if len(batch) == 0 {
		return answers, nil
	}
	b := batchWriter{store: s.database, incarnation: incarnation}
	err := s.lanes.withConn(ctx, func(lane *pgxpool.Conn) error {
		b.conn = lane.Conn()
		b.at = s.memory.beginBatch(time.Now()) // the era of this connection, or a later one
		written, err := b.writeWhole(ctx, batch, answers)
		if err == nil && !written || isConflict(err) {
			return b.writeSeparately(ctx, batch, answers)
		}
		return err
	})
	if err != nil {
		return nil, wrapError("commit", err)
	}
	s.memory.recordBatch(b.at, batch, answers)
	s.witness.recordBatch(batch, answers, b.at.era)
	return answers, nil
}

// batchWriter writes batches of one member over one connection.
type batchWriter struct {
	store       *database
	conn        *pgx.Conn
	incarnation string
	at          batchMoment
	repeated    bool // new tasks of the batch may exist already, because the batch was sent before
}

// writeWhole writes a batch with one statement, or in one transaction if it has checkpoints in
// parts.
func (b *batchWriter) writeWhole(ctx context.Context, batch []persistence.Commit, answers []error) (written bool, err error) {
	if !slices.ContainsFunc(batch, inParts) {
		return b.writeBatch(ctx, batch, answers)
	}
	err = pgx.BeginFunc(ctx, b.conn, func(pgx.Tx) (err error) {
		written, err = b.writeBatch(ctx, batch, answers)
		return err
	})
	return written, err
}

// isConflict reports whether an error means that a new task or a journal row exists already. In
// this case nothing was written.
func isConflict(err error) bool {
	e := new(pgconn.PgError)
	return errors.As(err, &e) && e.Code == uniqueViolation
}

// writeBatch returns false if nothing was written: the member is fenced, the era has changed, or a
// commit cannot be written. In a repeated batch, an existing task is no failure; its result is
// ErrExists.
func (b *batchWriter) writeBatch(ctx context.Context, batch []persistence.Commit, answers []error) (bool, error) {
	p := parcels.Get().(*packedBatch)
	defer p.returnToPool()
	if !p.packBatch(b.store, batch, b.repeated) {
		return false, nil
	}
	shape, parameters := p.shapeAndParameters(b.incarnation, b.at.era)
	statement := b.store.statementFor(shape)
	prepared, err := b.conn.Prepare(ctx, statement.name, statement.text)
	if err != nil {
		return false, err
	}
	result := b.conn.PgConn().ExecStatement(ctx, prepared, parameters, binaryFormat, binaryFormat)
	written, created := false, map[string]bool{}
	for result.NextRow() {
		if id := result.Values()[0]; id != nil {
			created[string(id)] = true
		}
		written = true
	}
	if _, err := result.Close(); err != nil {
		return false, err
	}
	if written && shape.hasKind(repeated) && len(created) < p.creates {
		for i, c := range batch {
			if c.Create != nil && !created[c.Task] {
				answers[i] = persistence.ErrExists
			}
		}
	}
	if !written {
		return false, nil
	}
	return true, b.writeParts(ctx, batch, answers)
}

// binaryFormat is the format of all parameters and columns.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// writeSeparately writes all commits that can be written in one transaction. Its lock on the member
// prevents a new era meanwhile.
func (b *batchWriter) writeSeparately(ctx context.Context, batch []persistence.Commit, answers []error) error {
	b.repeated = true
	return pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		var era int64
		err := tx.QueryRow(ctx, b.store.schema.qualify(
			"SELECT era FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0 FOR SHARE"),
			b.incarnation).Scan(&era)
		if errors.Is(err, pgx.ErrNoRows) {
			return persistence.ErrFenced
		}
		if err != nil {
			return err
		}
		b.at = b.store.memory.enterEra(era)
		return b.writeHalves(ctx, tx, batch, answers)
	})
}

// writeHalves writes a batch as a whole, or else its halves, down to single commits. It sets the
// results of the commits.
func (b *batchWriter) writeHalves(ctx context.Context, tx pgx.Tx, batch []persistence.Commit, answers []error) error {
	written, err := b.tryWrite(ctx, tx, batch, answers)
	if written || err != nil {
		return err
	}
	if len(batch) == 1 {
		answers[0], err = b.rejectReason(ctx, tx, &batch[0])
		return err
	}
	middle := len(batch) / 2
	if err := b.writeHalves(ctx, tx, batch[:middle], answers[:middle]); err != nil {
		return err
	}
	return b.writeHalves(ctx, tx, batch[middle:], answers[middle:])
}

// tryWrite tries to write a batch in a savepoint. On a conflict it leaves the transaction
// unchanged.
func (b *batchWriter) tryWrite(ctx context.Context, tx pgx.Tx, batch []persistence.Commit, answers []error) (written bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(pgx.Tx) (err error) {
		written, err = b.writeBatch(ctx, batch, answers)
		return err
	})
	if isConflict(err) {
		return false, nil
	}
	return written, err
}

// rejectReason returns the reason why a commit could not be written.
func (b *batchWriter) rejectReason(ctx context.Context, tx pgx.Tx, c *persistence.Commit) (answer, err error) {
	if c.Create != nil {
		return b.notCreated(ctx, tx, c)
	}
	var exists bool
	if err := tx.QueryRow(ctx, b.store.schema.qualify(
		"SELECT EXISTS (SELECT FROM troupe.tasks WHERE id = $1)"), c.Task).Scan(&exists); err != nil {
		return nil, fmt.Errorf("why it was not written: %w", err)
	}
	if !exists {
		return persistence.ErrUnknown, nil
	}
	return persistence.ErrStale, nil
}

// notCreated returns the reason why a new task could not be written.
func (b *batchWriter) notCreated(ctx context.Context, tx pgx.Tx, c *persistence.Commit) (answer, err error) {
	if isMalformed(c) {
		return persistence.ErrStale, nil
	}
	var exists bool
	if err := tx.QueryRow(ctx, b.store.schema.qualify(
		"SELECT EXISTS (SELECT FROM troupe.tasks WHERE id = $1)"), c.Task).Scan(&exists); err != nil {
		return nil, fmt.Errorf("why it was not written: %w", err)
	}
	if exists {
		return persistence.ErrExists, nil
	}
	return persistence.ErrNoVersion, nil
}
