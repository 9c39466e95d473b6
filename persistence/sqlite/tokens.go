package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// tokenStore keeps tokens.
type tokenStore struct{ *database }

func (s tokenStore) AddToken(ctx context.Context, t persistence.Token) error {
	return s.inTransaction(ctx, "add a token", func(x writeTx) error {
		n, err := x.execCount("INSERT INTO tokens ("+listing.TokenColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			t.ID, t.Name, t.Role, t.Hash, t.CreatedAt, t.CreatedBy, t.ExpiresAt, t.LastUsedAt)
		if err == nil && n == 0 {
			return persistence.ErrDuplicate
		}
		return err
	})
}

func (s tokenStore) ListTokens(ctx context.Context) ([]persistence.Token, error) {
	return readRows(ctx, &s.readers, "list tokens", listing.ScanToken, "SELECT "+listing.TokenColumns+" FROM tokens ORDER BY name")
}

func (s tokenStore) UseToken(ctx context.Context, id string, at int64) error {
	return s.inTransaction(ctx, "note the use of a token", func(x writeTx) error {
		_, err := x.execCount("UPDATE tokens SET last_used_at = ?2 WHERE id = ?1 AND last_used_at < ?2", id, at)
		return err
	})
}

func (s tokenStore) DeleteToken(ctx context.Context, id string) error {
	return s.inTransaction(ctx, "delete a token", func(x writeTx) error {
		n, err := x.execCount("DELETE FROM tokens WHERE id = ?", id)
		if err == nil && n == 0 {
			return persistence.ErrNotFound
		}
		return err
	})
}
