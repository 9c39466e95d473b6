// Package schema brings a database's schema up to date.
package schema

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3"
)

// Update migrates forward, and refuses a schema that is newer than this program.
func Update(ctx context.Context, p *goose.Provider) error {
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	current, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if current > known {
		return fmt.Errorf("the schema has version %d and this program knows up to %d: use a newer program", current, known)
	}
	return nil
}
