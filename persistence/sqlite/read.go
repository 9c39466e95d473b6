package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// querier is a pool of readers, or one of them in a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// read collects the rows of a query.
func read[T any](ctx context.Context, q querier, what string, scan func(listing.Row, *T) error, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list, err := listing.Collect(rows, scan)
	if err = errors.Join(err, rows.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
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
