package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	update "github.com/troupe-engine/troupe/persistence/internal/schema"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationsTable stores the hashes of the migrations' texts.
const migrationsTable = "troupe.migrations"

// migrateSchema brings the schema up to date. Only one program migrates at a time. It sets no
// timeouts, because large tables take long.
func migrateSchema(ctx context.Context, config *pgx.ConnConfig, s schemaName) (err error) {
	if err := ensureSchema(ctx, config, s); err != nil {
		return err
	}
	db := stdlib.OpenDB(*config.Copy())
	defer func() { err = errors.Join(err, db.Close()) }()
	steps, hashes, err := update.Steps(migrations, s.qualify(migrationsTable), s.qualify)
	if err != nil {
		return err
	}
	// The lock is tried every second for ten minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(s.lockID("migrate")), lock.WithLockTimeout(1, 600))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(steps...),
		goose.WithTableName(string(s)+"."+versionTable),
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return update.Update(ctx, p, hashes, func(ctx context.Context) (map[int64]string, error) { return s.readHashes(ctx, db) })
}

// readHashes returns the hashes of the migrations that made the schema; nil for a new schema.
func (s schemaName) readHashes(ctx context.Context, db *sql.DB) (map[int64]string, error) {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", s.qualify(migrationsTable)).Scan(&there); err != nil || !there {
		return nil, err
	}
	return update.Kept(ctx, db, s.qualify("SELECT version, hash FROM "+migrationsTable))
}
