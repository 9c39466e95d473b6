package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/persistence/internal/listing"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// writeLane is the only connection that writes. It prepares each statement once.
type writeLane struct {
	turn  chan struct{} // holds a token while a write is in progress
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	ends  *lru.Cache[*journalEnd] // by task
	files *databaseFiles
	log   *walFile
}

var errClosed = errors.New("the store is closed")

func openLane(ctx context.Context, db *sql.DB, files *databaseFiles) (writeLane, error) {
	conn, err := db.Conn(ctx)
	return writeLane{turn: make(chan struct{}, 1), conn: conn, stmts: map[string]*sql.Stmt{},
		ends: lru.New[*journalEnd](endsBytes), files: files, log: newLog(files.path, logMost)}, err
}

// inTransaction runs f in its own transaction. ctx only bounds the wait for a turn. A write that
// has begun is finished, because interrupting it costs more than it saves.
func (l *writeLane) inTransaction(ctx context.Context, what string, f func(writeTx) error) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if l.conn == nil {
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	if err := l.files.checkWritten(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t := writeTx{context.WithoutCancel(ctx), l}
	err := l.runTransaction(t, f)
	l.log.truncateIfLong(t)
	l.files.recordState(err == nil)
	return wrapError(what, err)
}

func (l *writeLane) runTransaction(t writeTx, f func(writeTx) error) error {
	if _, err := t.execCount("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := l.files.raiseMark(t)
	if err == nil {
		err = f(t)
	}
	if err == nil {
		_, err = t.execCount("COMMIT")
	}
	if err == nil {
		return nil
	}
	t.lane.ends.Clear()
	// After some errors SQLite has rolled back already, and a second rollback fails.
	_, _ = t.execCount("ROLLBACK")
	return err
}

func (l *writeLane) close() error {
	if l.turn == nil {
		return nil // the connection was never opened
	}
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.conn == nil {
		return nil
	}
	var err error
	for _, stmt := range l.stmts {
		err = errors.Join(err, stmt.Close())
	}
	err = errors.Join(err, l.conn.Close())
	l.conn = nil
	return err
}

// writeTx is a transaction of the lane.
type writeTx struct {
	ctx  context.Context
	lane *writeLane
}

func (t writeTx) prepareQuery(query string) (*sql.Stmt, error) {
	if stmt := t.lane.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.lane.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return nil, err
	}
	t.lane.stmts[query] = stmt
	return stmt, nil
}

func (t writeTx) execPrepared(query string, args ...any) (sql.Result, error) {
	stmt, err := t.prepareQuery(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(t.ctx, args...)
}

// execCount runs a statement and returns the number of rows written.
func (t writeTx) execCount(query string, args ...any) (int64, error) {
	result, err := t.execPrepared(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// queryOne reads a single row. Without a row it returns an error for which isNone is true.
func (t writeTx) queryOne(query string, args []any, dest ...any) error {
	stmt, err := t.prepareQuery(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(t.ctx, args...).Scan(dest...)
}

// queryRows returns the rows of a query.
func queryRows[T any](t writeTx, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
	stmt, err := t.prepareQuery(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(t.ctx, args...)
	if err != nil {
		return nil, err
	}
	all, err := listing.Collect(rows, scan)
	if closed := rows.Close(); err == nil {
		err = closed
	}
	return all, err
}

func isNone(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// nullableBytes returns nil as NULL, so that it differs from empty bytes.
func nullableBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// nonNilBytes returns an empty slice for nil.
func nonNilBytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
