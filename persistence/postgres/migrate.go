package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	update "github.com/troupe-engine/troupe/persistence/internal/schema"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, one program at a time, with the patience that large tables need.
func migrate(ctx context.Context, config *pgx.ConnConfig, s schema) (err error) {
	if err := settle(ctx, config, s); err != nil {
		return err
	}
	db := stdlib.OpenDB(*config.Copy())
	defer func() { err = errors.Join(err, db.Close()) }()
	steps, err := s.migrations()
	if err != nil {
		return err
	}
	// Looked at every second, for ten minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(s.lock("migrate")), lock.WithLockTimeout(1, 600))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(steps...), goose.WithTableName(string(s)+"."+versionTable),
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return update.Update(ctx, p)
}

// migrations are the files, for this schema: each is sent as it is, in a transaction of its own.
func (s schema) migrations() (steps []*goose.Migration, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, s.in(string(text)))
			return err
		}}, nil))
	}
	return steps, nil
}
