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

// readPool is the pool that reads. It prepares each of our statements once for a connection, which
// is most of what a short read costs.
type readPool struct {
	db    *sql.DB
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// prepareQuery may wait for a connection, so nobody who has one calls it for a new statement.
func (r *readPool) prepareQuery(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := r.findStatement(query, nil); stmt != nil {
		return stmt, nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	known := r.findStatement(query, stmt)
	if known != stmt { // somebody else was faster
		err = stmt.Close()
	}
	return known, err
}

// findStatement finds a statement; a missing one becomes the new one.
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
		return nil // it was never opened
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

// readSnapshot reads in one transaction, by statements that the pool has prepared.
type readSnapshot struct {
	*readPool
	tx *sql.Tx
}

// beginSnapshot prepares the statements that will be used, before it takes a connection.
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

// querier is whoever reads: the pool, a snapshot, or the database itself for statements that are
// different each time.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// readRows collects the rows of a query.
func readRows[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
	return readUntil(ctx, q, what, scan, nil, query, args...)
}

// readUntil collects them up to one that is enough; nil = all.
func readUntil[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, enough func(*T) bool, query string, args ...any) ([]T, error) {
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

// readFirst reads one row; persistence.ErrNotFound when there is none.
func readFirst[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, query string, args ...any) (*T, error) {
	list, err := readRows(ctx, q, what, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return &list[0], nil
}
