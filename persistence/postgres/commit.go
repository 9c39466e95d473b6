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

// Commit expects that all of a batch can be written, and sends one statement that does so or does nothing.
// Looking at each commit by itself is for the rare batch of which that is not true.
func (s *store) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	answers := make([]error, len(batch))
	if len(batch) == 0 {
		return answers, nil
	}
	b := batches{store: s, incarnation: incarnation}
	err := s.lanes.use(ctx, func(lane *pgxpool.Conn) error {
		b.conn = lane.Conn()
		b.at = s.memory.recall(time.Now()) // of this connection, or a later one
		written, err := b.whole(ctx, batch, answers)
		if err == nil && !written || conflicts(err) {
			return b.apart(ctx, batch, answers)
		}
		return err
	})
	if err != nil {
		return nil, wrap("commit", err)
	}
	s.memory.learn(b.at, batch, answers)
	s.witness.note(batch, answers, b.at.era)
	return answers, nil
}

// batches writes batches of one member over one connection.
type batches struct {
	store       *store
	conn        *pgx.Conn
	incarnation string
	at          moment
	repeated    bool // tasks that begin may be there already
}

// whole writes a batch by one statement, or, when there are checkpoints in parts, in one transaction.
func (b *batches) whole(ctx context.Context, batch []persistence.Commit, answers []error) (written bool, err error) {
	if !slices.ContainsFunc(batch, inParts) {
		return b.write(ctx, batch, answers)
	}
	err = pgx.BeginFunc(ctx, b.conn, func(pgx.Tx) (err error) {
		written, err = b.write(ctx, batch, answers)
		return err
	})
	return written, err
}

// conflicts is true when a task that begins or a row of a journal is there already. Nothing was written.
func conflicts(err error) bool {
	e := new(pgconn.PgError)
	return errors.As(err, &e) && e.Code == uniqueViolation
}

// write is false when nothing was written: by a fenced member, in an earlier era, or because not all could be. That a task of a repeated
// batch exists already is an answer like any other.
func (b *batches) write(ctx context.Context, batch []persistence.Commit, answers []error) (bool, error) {
	p := parcels.Get().(*parcel)
	defer p.giveBack()
	if !p.pack(b.store, batch, b.repeated) {
		return false, nil
	}
	shape, parameters := p.shape(b.incarnation, b.at.era)
	statement := b.store.statement(shape)
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
	if written && shape.has(repeated) && len(created) < p.creates {
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

// binaryFormat is that of all parameters and columns.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// apart writes what can be written, in one transaction, during which no era begins.
func (b *batches) apart(ctx context.Context, batch []persistence.Commit, answers []error) error {
	b.repeated = true
	return pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		var era int64
		err := tx.QueryRow(ctx, b.store.schema.in("SELECT era FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0 FOR SHARE"), b.incarnation).Scan(&era)
		if errors.Is(err, pgx.ErrNoRows) {
			return persistence.ErrFenced
		}
		if err != nil {
			return err
		}
		b.at = b.store.memory.enter(era)
		return b.halve(ctx, tx, batch, answers)
	})
}

// halve writes a batch as a whole or else its halves, down to single commits, which are answered.
func (b *batches) halve(ctx context.Context, tx pgx.Tx, batch []persistence.Commit, answers []error) error {
	written, err := b.try(ctx, tx, batch, answers)
	if written || err != nil {
		return err
	}
	if len(batch) == 1 {
		answers[0], err = b.reason(ctx, tx, &batch[0])
		return err
	}
	middle := len(batch) / 2
	if err := b.halve(ctx, tx, batch[:middle], answers[:middle]); err != nil {
		return err
	}
	return b.halve(ctx, tx, batch[middle:], answers[middle:])
}

// try leaves the transaction as it was when there is a conflict.
func (b *batches) try(ctx context.Context, tx pgx.Tx, batch []persistence.Commit, answers []error) (written bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(pgx.Tx) (err error) {
		written, err = b.write(ctx, batch, answers)
		return err
	})
	if conflicts(err) {
		return false, nil
	}
	return written, err
}

// reason says why a commit could not be written.
func (b *batches) reason(ctx context.Context, tx pgx.Tx, c *persistence.Commit) (answer, err error) {
	if c.Create != nil {
		return b.notCreated(ctx, tx, c)
	}
	var exists bool
	if err := tx.QueryRow(ctx, b.store.schema.in("SELECT EXISTS (SELECT FROM troupe.tasks WHERE id = $1)"), c.Task).Scan(&exists); err != nil {
		return nil, fmt.Errorf("why it was not written: %w", err)
	}
	if !exists {
		return persistence.ErrUnknown, nil
	}
	return persistence.ErrStale, nil
}

// notCreated says why a task could not begin that is not there.
func (b *batches) notCreated(ctx context.Context, tx pgx.Tx, c *persistence.Commit) (answer, err error) {
	if malformed(c) {
		return persistence.ErrStale, nil
	}
	var exists bool
	if err := tx.QueryRow(ctx, b.store.schema.in("SELECT EXISTS (SELECT FROM troupe.tasks WHERE id = $1)"), c.Task).Scan(&exists); err != nil {
		return nil, fmt.Errorf("why it was not written: %w", err)
	}
	if exists {
		return persistence.ErrExists, nil
	}
	return persistence.ErrNoVersion, nil
}
