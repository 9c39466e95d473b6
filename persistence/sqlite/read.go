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

// readers is the pool that reads. It prepares each of our statements once for a connection, which is
// most of what a short read costs.
type readers struct {
	db    *sql.DB
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// prepared may wait for a connection, so nobody who has one calls it for a new statement.
func (r *readers) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := r.known(query, nil); stmt != nil {
		return stmt, nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	known := r.known(query, stmt)
	if known != stmt { // somebody else was faster
		err = stmt.Close()
	}
	return known, err
}

// known finds a statement; a missing one becomes the new one.
func (r *readers) known(query string, stmt *sql.Stmt) *sql.Stmt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.stmts[query]; old != nil || stmt == nil {
		return old
	}
	r.stmts[query] = stmt
	return stmt
}

func (r *readers) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := r.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (r *readers) close() error {
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

// snapshot reads in one transaction, by statements that the pool has prepared.
type snapshot struct {
	*readers
	tx *sql.Tx
}

// begin prepares the statements that will be used, before it takes a connection.
func (r *readers) begin(ctx context.Context, queries ...string) (snapshot, error) {
	for _, query := range queries {
		if _, err := r.prepared(ctx, query); err != nil {
			return snapshot{}, err
		}
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return snapshot{r, tx}, err
}

func (s snapshot) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepared(ctx, query)
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

// read collects the rows of a query.
func read[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
	return readUntil(ctx, q, what, scan, nil, query, args...)
}

// readUntil collects them up to one that is enough; nil = all.
func readUntil[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, enough func(*T) bool, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrap(what, err)
	}
	list, err := listing.CollectUntil(rows, scan, enough)
	if err = errors.Join(err, rows.Close()); err != nil {
		return nil, wrap(what, err)
	}
	return list, nil
}

// first reads one row; persistence.ErrNotFound when there is none.
func first[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, query string, args ...any) (*T, error) {
	list, err := read(ctx, q, what, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return &list[0], nil
}
