package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// readPool is the pool of reading connections. It prepares each statement once per connection,
// because preparing is most of the cost of a short read.
type readPool struct {
	db    *sql.DB
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// prepareQuery returns the prepared statement of a query. It may wait for a connection, so a caller
// that holds a connection must not call it for a new statement.
func (r *readPool) prepareQuery(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := r.findStatement(query, nil); stmt != nil {
		return stmt, nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	known := r.findStatement(query, stmt)
	if known != stmt { // another caller was faster
		err = stmt.Close()
	}
	return known, err
}

// findStatement returns the stored statement of a query. If there is none and stmt is not nil, it
// stores stmt.
func (r *readPool) findStatement(query string, stmt *sql.Stmt) *sql.Stmt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.stmts[query]; old != nil || stmt == nil {
		return old
	}
	r.stmts[query] = stmt
	return stmt
}

func (r *readPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := r.prepareQuery(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (r *readPool) close() error {
	if r.db == nil {
		return nil // the pool was never opened
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for query, stmt := range r.stmts {
		err = errors.Join(err, stmt.Close())
		delete(r.stmts, query)
	}
	return errors.Join(err, r.db.Close())
}

// readSnapshot is a read transaction that uses the prepared statements of the pool.
type readSnapshot struct {
	*readPool
	tx *sql.Tx
}

// beginSnapshot begins a read transaction. It prepares the given statements before it takes a
// connection.
func (r *readPool) beginSnapshot(ctx context.Context, queries ...string) (readSnapshot, error) {
	for _, query := range queries {
		if _, err := r.prepareQuery(ctx, query); err != nil {
			return readSnapshot{}, err
		}
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return readSnapshot{r, tx}, err
}

func (s readSnapshot) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepareQuery(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
}

// querier runs queries. The pool and a snapshot keep prepared statements. The database itself is
// for statements that differ each time.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// readRows returns the rows of a query.
func readRows[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error,
	query string, args ...any) ([]T, error) {
	return readUntil(ctx, q, what, scan, nil, query, args...)
}

// readUntil returns the rows up to and including the first for which enough is true. If enough is
// nil, it returns all rows.
func readUntil[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error,
	enough func(*T) bool, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrapError(what, err)
	}
	list, err := listing.CollectUntil(rows, scan, enough)
	if err = errors.Join(err, rows.Close()); err != nil {
		return nil, wrapError(what, err)
	}
	return list, nil
}

// readFirst returns one row, or persistence.ErrNotFound.
func readFirst[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error,
	query string, args ...any) (*T, error) {
	list, err := readRows(ctx, q, what, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return &list[0], nil
}
