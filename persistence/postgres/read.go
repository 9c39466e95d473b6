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

// readRows collects the rows of a query.
func readRows[T any](ctx context.Context, s *store, what string, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
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

// onlyIndexes has the rest of a transaction read pages in the order of an index. Statistics may be
// from before a burst: then the planner takes what is left for next to nothing, and sorts all of it
// for each page. What has to be sorted nevertheless seems to cost so much that it would be
// compiled.
const onlyIndexes = `SELECT set_config(name, 'off', true)
	FROM unnest(ARRAY['enable_sort', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']) name`

// readPage reads a query that asks for some rows in an order that an index has.
func readPage[T any](ctx context.Context, s *store, what string, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
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

// readFirst reads one row; persistence.ErrNotFound when there is none.
func readFirst[T any](ctx context.Context, s *store, what string, scan func(listing.Row, *T) error, query string, args ...any) (*T, error) {
	list, err := readRows(ctx, s, what, scan, query, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return &list[0], nil
}

// findByKey reads the row that a key is the name of. The server would refuse to look for what is no
// text.
func findByKey[T any](ctx context.Context, s *store, what string, scan func(listing.Row, *T) error, query, key string, more ...any) (*T, error) {
	if !flow.IsText(key) {
		return nil, fmt.Errorf("%s: %w", what, persistence.ErrNotFound)
	}
	return readFirst(ctx, s, what, scan, query, append([]any{key}, more...)...)
}

// inOne sends statements at once over a connection of a pool; they are one transaction.
func (s *store) inOne(ctx context.Context, p *connPool, batch *pgx.Batch) error {
	return p.withConn(ctx, func(conn *pgxpool.Conn) error { return conn.SendBatch(ctx, s.schema.qualifyBatch(batch)).Close() })
}

// execCount tells how many rows were written.
func (s *store) execCount(ctx context.Context, what, query string, args ...any) (rows int, err error) {
	err = s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, s.schema.qualify(query), args...)
		rows = int(tag.RowsAffected())
		return err
	})
	return rows, wrapError(what, err)
}
