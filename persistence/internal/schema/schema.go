// Package schema brings a database's schema up to date.
package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/pressly/goose/v3"
)

// Steps returns the migrations in files. Each runs in its own transaction, which also stores the
// hash of its text. The first migration creates the table (version, hash). change adapts a text
// before it is sent.
func Steps(files fs.FS, table string, change func(text string) string) (steps []*goose.Migration, hashes map[int64]string, err error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, nil, err
	}
	hashes = map[int64]string{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, nil, err
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, nil, err
		}
		hash := hashOf(string(text))
		hashes[version] = hash
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, change(string(text))); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (version, hash) VALUES (%d, '%s')", table, version, hash))
			return err
		}}, nil))
	}
	return steps, hashes, nil
}

// comments matches SQL comments, which are ignored in hashes.
var comments = regexp.MustCompile(`--[^\n]*`)

// hashOf returns a hash of an SQL text without comments and white space.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(comments.ReplaceAllString(text, "")), " ")))
	return hex.EncodeToString(sum[:])
}

// Update migrates forward. It refuses a schema that is newer than this program, or that was made by
// other texts of the same migrations. kept reads the hashes in the schema; it returns none if their
// table does not exist.
func Update(ctx context.Context, p *goose.Provider, hashes map[int64]string, kept func(context.Context) (map[int64]string, error)) error {
	if err := checkHashes(ctx, p, hashes, kept); err != nil { // check before any migration
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return checkHashes(ctx, p, hashes, kept) // another program may have migrated meanwhile
}

func checkHashes(ctx context.Context, p *goose.Provider, hashes map[int64]string,
	kept func(context.Context) (map[int64]string, error)) error {
	current, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	made, err := kept(ctx)
	if err != nil {
		return fmt.Errorf("migrate: read what made the schema: %w", err)
	}
	for version, hash := range hashes {
		if version <= current && made[version] != hash {
			return fmt.Errorf("the store was made by another build of Troupe, whose tables are "+
				"not those of this build (migration %d differs), and it stays as it is: "+
				"use the build that made it, or give this one a new store (--store, or --schema on PostgreSQL)", version)
		}
	}
	if current > known {
		return fmt.Errorf("the schema has version %d and this program knows up to %d: use a newer program", current, known)
	}
	return nil
}

// Kept runs a query for versions and hashes, and returns the hashes by version.
func Kept(ctx context.Context, db *sql.DB, query string) (map[int64]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	made := map[int64]string{}
	for rows.Next() {
		var version int64
		var hash string
		if err := rows.Scan(&version, &hash); err != nil {
			return nil, err
		}
		made[version] = hash
	}
	return made, rows.Err()
}
