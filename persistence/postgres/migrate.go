package postgres

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/troupe-engine/troupe/persistence/internal/schema"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, one program at a time, with the patience that large tables need.
func migrate(ctx context.Context, config pgx.ConnConfig) (err error) {
	db := stdlib.OpenDB(config)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	// Looked at every second, for ten minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 600))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return schema.Update(ctx, p)
}
