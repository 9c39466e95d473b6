package layers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// OpenStore opens the store that a setting names: "sqlite:PATH", or a "postgres://" URL with a
// schema.
func OpenStore(ctx context.Context, setting, schema string, log *slog.Logger) (persistence.Store, error) {
	path, isFile := strings.CutPrefix(setting, "sqlite:")
	switch {
	case schema != "" && StoreKind(setting) == "sqlite":
		return nil, fmt.Errorf("--schema %s: a store of SQLite has no schemas: leave it out, or "+
			"use a store of PostgreSQL (--store postgres://…)", schema)
	case setting == "":
		return sqlite.Open(ctx, "troupe.db", sqlite.Options{})
	case isFile:
		if err := checkFile(path); err != nil {
			return nil, fmt.Errorf("store %q %w", setting, err)
		}
		return sqlite.Open(ctx, path, sqlite.Options{})
	case strings.HasPrefix(setting, "postgres://"), strings.HasPrefix(setting, "postgresql://"):
		return postgres.Open(ctx, setting, postgres.Options{Schema: schema, Log: log})
	}
	return nil, fmt.Errorf("store %q is neither sqlite:PATH nor a postgres:// URL", StoreName(setting))
}

// checkFile rejects options and URIs that other programs accept after "sqlite:". Without this check
// they would become the name of a new, empty file.
func checkFile(path string) error {
	before, options, _ := strings.Cut(path, "?")
	switch {
	case path == "":
		return errors.New("names no file: write sqlite:PATH")
	case strings.Contains(path, ":memory:") || strings.Contains(options, "mode=memory"):
		return errors.New("would be in memory and lost with its member: write sqlite:PATH, for " +
			"tests in a folder that is removed afterwards")
	case strings.Contains(options, "="):
		return fmt.Errorf("has options, and a member needs its file as it is, to be read and written: write sqlite:%s", before)
	case strings.HasPrefix(path, "file:"):
		return fmt.Errorf("has a URI: write the path alone, sqlite:%s", strings.TrimPrefix(before, "file:"))
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		name := strings.TrimPrefix(path, "//")
		return fmt.Errorf("begins like a URL with a host: write sqlite:%s for a path from the present folder, or sqlite:/%[1]s", name)
	}
	return nil
}

// StoreName returns the part of a store's setting that may be displayed. It holds no password.
func StoreName(setting string) string {
	switch {
	case StoreKind(setting) == "postgres":
		return postgres.Name(setting)
	case strings.HasPrefix(setting, "sqlite:") || !strings.ContainsAny(setting, "@=?"):
		return setting
	}
	return "…" // the kind is unknown, so any part may be a password
}

// StoreKind returns the kind of store of a setting.
func StoreKind(setting string) string {
	if strings.HasPrefix(setting, "postgres") {
		return "postgres"
	}
	return "sqlite"
}
