package sqlite

import (
	"context"
	"database/sql"
	"embed"

	"github.com/pressly/goose/v3"

	"github.com/troupe-engine/troupe/persistence/internal/schema"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateSchema migrates the schema. The lock file excludes other programs meanwhile.
func migrateSchema(ctx context.Context, db *sql.DB) error {
	steps, hashes, err := schema.Steps(migrations, "migrations", func(text string) string { return text })
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return schema.Update(ctx, p, hashes, func(ctx context.Context) (map[int64]string, error) { return readHashes(ctx, db) })
}

// readHashes returns the hashes of the migrations that made the schema; nil for a new schema.
func readHashes(ctx context.Context, db *sql.DB) (map[int64]string, error) {
	there := 0
	if err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'").Scan(&there); err != nil ||
		there == 0 {
		return nil, err
	}
	return schema.Kept(ctx, db, "SELECT version, hash FROM migrations")
}
