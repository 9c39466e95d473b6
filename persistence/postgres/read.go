package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// readRows returns the rows of a query.
func readRows[T any](ctx context.Context, s *database, what string, scan func(listing.Row, *T) error,
	query string, args ...any) ([]T, error) {
	var list []T
	err := s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, s.schema.qualify(query), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		list, err = listing.Collect(rows, scan)
		return err
	})
	if err != nil {
		return nil, wrapError(what, err)
	}
	return list, nil
}

// onlyIndexes makes the rest of a transaction read pages in index order. With outdated statistics,
// the planner would underestimate the rows and sort all of them for each page. jit is off, because
// such queries could seem expensive enough to be compiled.
const onlyIndexes = `SELECT set_config(name, 'off', true)
	FROM unnest(ARRAY['enable_sort', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']) name`

// readPage runs a query that reads some rows in the order of an index.
func readPage[T any](ctx context.Context, s *database, what string, scan func(listing.Row, *T) error,
	query string, args ...any) ([]T, error) {
	var list []T
	var batch pgx.Batch
	batch.Queue(onlyIndexes)
	batch.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		list, err = listing.Collect(rows, scan)
		return err
	})
	if err := s.inOne(ctx, s.pool, &batch); err != nil {
		return nil, wrapError(what, err)
	}
	return list, nil
}

// readFirst returns one row, or persistence.ErrNotFound.
func readFirst[T any](ctx context.Context, s *database, what string, scan func(listing.Row, *T) error,
	query string, args ...any) (*T, error) {
	list, err := readRows(ctx, s, what, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return &list[0], nil
}

// findByKey returns the row with a key. It returns ErrNotFound for a key that is no valid text,
// because the server would return an error.
func findByKey[T any](ctx context.Context, s *database, what string, scan func(listing.Row, *T) error,
	query, key string, more ...any) (*T, error) {
	if !flow.IsText(key) {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return readFirst(ctx, s, what, scan, query, append([]any{key}, more...)...)
}

// inOne sends statements together over one connection of a pool, as one transaction.
func (s *database) inOne(ctx context.Context, p *connPool, batch *pgx.Batch) error {
	return p.withConn(ctx, func(conn *pgxpool.Conn) error { return conn.SendBatch(ctx, s.schema.qualifyBatch(batch)).Close() })
}

// execCount runs a statement and returns the number of rows written.
func (s *database) execCount(ctx context.Context, what, query string, args ...any) (rows int, err error) {
	err = s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, s.schema.qualify(query), args...)
		rows = int(tag.RowsAffected())
		return err
	})
	return rows, wrapError(what, err)
}
