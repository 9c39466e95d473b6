package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

func (s *store) AddToken(ctx context.Context, t persistence.Token) error {
	return s.write(ctx, "add a token", func(x tx) error {
		n, err := x.exec("INSERT INTO tokens ("+listing.TokenColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			t.ID, t.Name, t.Role, t.Hash, t.CreatedAt, t.CreatedBy, t.ExpiresAt, t.LastUsedAt)
		if err == nil && n == 0 {
			return persistence.ErrDuplicate
		}
		return err
	})
}

func (s *store) ListTokens(ctx context.Context) ([]persistence.Token, error) {
	return read(ctx, &s.readers, "list tokens", listing.ScanToken, "SELECT "+listing.TokenColumns+" FROM tokens ORDER BY name")
}

func (s *store) UseToken(ctx context.Context, id string, at int64) error {
	return s.write(ctx, "note the use of a token", func(x tx) error {
		_, err := x.exec("UPDATE tokens SET last_used_at = ?2 WHERE id = ?1 AND last_used_at < ?2", id, at)
		return err
	})
}

func (s *store) DeleteToken(ctx context.Context, id string) error {
	return s.write(ctx, "delete a token", func(x tx) error {
		n, err := x.exec("DELETE FROM tokens WHERE id = ?", id)
		if err == nil && n == 0 {
			return persistence.ErrNotFound
		}
		return err
	})
}
