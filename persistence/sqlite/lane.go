package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/persistence/internal/listing"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// lane is the one connection that writes. Its statements are prepared once.
type lane struct {
	turn  chan struct{} // has room while nobody writes
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	ends  *lru.Cache[*journal] // by task
	files *files
	log   *log
}

var errClosed = errors.New("the store is closed")

func openLane(ctx context.Context, db *sql.DB, files *files) (lane, error) {
	conn, err := db.Conn(ctx)
	return lane{turn: make(chan struct{}, 1), conn: conn, stmts: map[string]*sql.Stmt{}, ends: lru.New[*journal](endsBytes), files: files, log: newLog(files.path, logMost)}, err
}

// write runs f in a transaction of its own. The context ends the wait for a turn; what has begun is
// finished, because a write interrupted half way costs more than it saves.
func (l *lane) write(ctx context.Context, what string, f func(tx) error) error {
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
	t := tx{context.WithoutCancel(ctx), l}
	err := l.transaction(t, f)
	l.log.shorten(t)
	l.files.note(err == nil)
	return wrap(what, err)
}

func (l *lane) transaction(t tx, f func(tx) error) error {
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := l.files.raise(t)
	if err == nil {
		err = f(t)
	}
	if err == nil {
		_, err = t.exec("COMMIT")
	}
	if err == nil {
		return nil
	}
	t.lane.ends.Clear()
	// After some failures SQLite has rolled back by itself and refuses to do it again.
	_, _ = t.exec("ROLLBACK")
	return err
}

func (l *lane) close() error {
	if l.turn == nil {
		return nil // it was never opened
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

// tx is the lane in the hands of the one whose turn it is.
type tx struct {
	ctx  context.Context
	lane *lane
}

func (t tx) prepared(query string) (*sql.Stmt, error) {
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

func (t tx) do(query string, args ...any) (sql.Result, error) {
	stmt, err := t.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(t.ctx, args...)
}

// exec tells how many rows were written.
func (t tx) exec(query string, args ...any) (int64, error) {
	result, err := t.do(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// one reads a single row; isNone when there is none.
func (t tx) one(query string, args []any, dest ...any) error {
	stmt, err := t.prepared(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(t.ctx, args...).Scan(dest...)
}

// list reads the rows of a query.
func list[T any](t tx, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
	stmt, err := t.prepared(query)
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

// blob keeps nil apart from empty.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// some makes nil empty.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
