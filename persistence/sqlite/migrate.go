package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/troupe-engine/troupe/persistence/internal/schema"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. The lock on the file keeps others away meanwhile.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return schema.Update(ctx, p)
}
