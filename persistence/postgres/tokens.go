package postgres

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// tokenStore keeps tokens.
type tokenStore struct{ *database }

func (s tokenStore) AddToken(ctx context.Context, t persistence.Token) error {
	n, err := s.execCount(ctx, "add a token",
		"INSERT INTO troupe.tokens ("+listing.TokenColumns+
			") VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
		t.ID, t.Name, t.Role, t.Hash, t.CreatedAt, t.CreatedBy, t.ExpiresAt, t.LastUsedAt)
	if err == nil && n == 0 {
		return persistence.ErrDuplicate
	}
	return err
}

func (s tokenStore) ListTokens(ctx context.Context) ([]persistence.Token, error) {
	return readRows(ctx, s.database, "list tokens", listing.ScanToken, "SELECT "+listing.TokenColumns+" FROM troupe.tokens ORDER BY name")
}

func (s tokenStore) UseToken(ctx context.Context, id string, at int64) error {
	_, err := s.execCount(ctx, "note the use of a token",
		"UPDATE troupe.tokens SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2", id, at)
	return err
}

func (s tokenStore) DeleteToken(ctx context.Context, id string) error {
	n, err := s.execCount(ctx, "delete a token", "DELETE FROM troupe.tokens WHERE id = $1", id)
	if err == nil && n == 0 {
		return persistence.ErrNotFound
	}
	return err
}
