package postgres

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// hookStore stores hooks and their deliveries.
type hookStore struct{ *database }

func (s hookStore) PutHook(ctx context.Context, h persistence.Hook) error {
	secrets, err := listing.Secrets(h.Secrets)
	if err != nil {
		return err
	}
	args := []any{h.Name, nonNilBytes(h.Settings), secrets, h.Disabled, h.Revision, h.CreatedAt, h.UpdatedAt}
	query := `UPDATE troupe.hooks SET settings = $2, secrets = $3, disabled = $4, revision = ` +
		`$5, created_at = $6, updated_at = $7 WHERE name = $1 AND revision = $5 - 1`
	if h.Revision == 1 {
		query = `INSERT INTO troupe.hooks (name, settings, secrets, disabled, revision, ` +
			`created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	}
	n, err := s.execCount(ctx, "put a hook", query, args...)
	if err == nil && n == 0 {
		return persistence.ErrStale
	}
	return err
}

func (s hookStore) Hook(ctx context.Context, name string) (*persistence.Hook, error) {
	return findByKey(ctx, s.database, "read a hook", listing.ScanHook,
		"SELECT "+listing.HookColumns+" FROM troupe.hooks WHERE name = $1", name)
}

func (s hookStore) ListHooks(ctx context.Context, after string, limit int) ([]persistence.Hook, error) {
	return readRows(ctx, s.database, "list hooks", listing.ScanHook,
		"SELECT "+listing.HookColumns+" FROM troupe.hooks WHERE name > $1 ORDER BY name LIMIT $2", after, limit)
}

func (s hookStore) DeleteHook(ctx context.Context, name string) error {
	n, err := s.execCount(ctx, "delete a hook", "DELETE FROM troupe.hooks WHERE name = $1", name)
	if err == nil && n == 0 {
		return persistence.ErrNotFound
	}
	return err
}

func (s hookStore) BeginDelivery(ctx context.Context, d persistence.Delivery) (*persistence.Delivery, error) {
	for {
		n, err := s.execCount(ctx, "begin a delivery",
			`INSERT INTO troupe.deliveries (hook, id, digest, task, at, until) VALUES ($1, $2, `+
				`$3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			d.Hook, d.ID, d.Digest, d.Task, d.At, d.Until)
		if err != nil || n == 1 {
			return nil, err
		}
		known, err := readFirst(ctx, s.database, "read a delivery", listing.ScanDelivery,
			"SELECT "+listing.DeliveryColumns+" FROM troupe.deliveries WHERE hook = $1 AND id = $2", d.Hook, d.ID)
		if !errors.Is(err, persistence.ErrNotFound) { // the hook may have gone in between
			return known, err
		}
	}
}

func (s hookStore) EndDelivery(ctx context.Context, hook, id string, answer []byte) error {
	_, err := s.execCount(ctx, "end a delivery",
		"UPDATE troupe.deliveries SET answer = coalesce(answer, $3) WHERE hook = $1 AND id = $2",
		hook, id, nonNilBytes(answer))
	return err
}

func (s hookStore) ForgetDeliveries(ctx context.Context, before int64, limit int) (int, error) {
	return s.execCount(ctx, "forget deliveries", `DELETE FROM troupe.deliveries d USING (
		SELECT hook, id FROM troupe.deliveries WHERE until < $1 ORDER BY until LIMIT $2) x WHERE d.hook = x.hook AND d.id = x.id`, before, limit)
}
