package sqlite

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// hookStore keeps hooks and their deliveries.
type hookStore struct{ *database }

func (s hookStore) PutHook(ctx context.Context, h persistence.Hook) error {
	secrets, err := listing.Secrets(h.Secrets)
	if err != nil {
		return err
	}
	query := `UPDATE hooks SET settings = ?2, secrets = ?3, disabled = ?4, revision = ?5, ` +
		`created_at = ?6, updated_at = ?7 WHERE name = ?1 AND revision = ?5 - 1`
	if h.Revision == 1 {
		query = `INSERT INTO hooks (name, settings, secrets, disabled, revision, created_at, ` +
			`updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING`
	}
	return s.inTransaction(ctx, "put a hook", func(t writeTx) error {
		n, err := t.execCount(query, h.Name, nonNilBytes(h.Settings), secrets, h.Disabled, h.Revision, h.CreatedAt, h.UpdatedAt)
		if err == nil && n == 0 {
			return persistence.ErrStale
		}
		return err
	})
}

func (s hookStore) Hook(ctx context.Context, name string) (*persistence.Hook, error) {
	return readFirst(ctx, &s.readers, "read a hook", listing.ScanHook, "SELECT "+listing.HookColumns+" FROM hooks WHERE name = ?", name)
}

func (s hookStore) ListHooks(ctx context.Context, after string, limit int) ([]persistence.Hook, error) {
	return readRows(ctx, &s.readers, "list hooks", listing.ScanHook,
		"SELECT "+listing.HookColumns+" FROM hooks WHERE name > ? ORDER BY name LIMIT ?", after, limit)
}

func (s hookStore) DeleteHook(ctx context.Context, name string) error {
	return s.inTransaction(ctx, "delete a hook", func(t writeTx) error {
		n, err := t.execCount("DELETE FROM hooks WHERE name = ?", name)
		if err == nil && n == 0 {
			return persistence.ErrNotFound
		}
		return err
	})
}

func (s hookStore) BeginDelivery(ctx context.Context, d persistence.Delivery) (*persistence.Delivery, error) {
	begun := int64(0)
	for {
		err := s.inTransaction(ctx, "begin a delivery", func(t writeTx) (err error) {
			begun, err = t.execCount("INSERT INTO deliveries (hook, id, digest, task, at, "+
				"until) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
				d.Hook, d.ID, d.Digest, d.Task, d.At, d.Until)
			return err
		})
		if err != nil || begun == 1 {
			return nil, err
		}
		known, err := readFirst(ctx, &s.readers, "read a delivery", listing.ScanDelivery,
			"SELECT "+listing.DeliveryColumns+" FROM deliveries WHERE hook = ? AND id = ?", d.Hook, d.ID)
		if !errors.Is(err, persistence.ErrNotFound) { // deleted in between
			return known, err
		}
	}
}

func (s hookStore) EndDelivery(ctx context.Context, hook, id string, answer []byte) error {
	return s.inTransaction(ctx, "end a delivery", func(t writeTx) error {
		_, err := t.execCount("UPDATE deliveries SET answer = coalesce(answer, ?) WHERE hook = ? AND id = ?", nonNilBytes(answer), hook, id)
		return err
	})
}

func (s hookStore) ForgetDeliveries(ctx context.Context, before int64, limit int) (int, error) {
	var deleted int64
	err := s.inTransaction(ctx, "forget deliveries", func(t writeTx) (err error) {
		deleted, err = t.execCount("DELETE FROM deliveries WHERE (hook, id) IN (SELECT hook, id "+
			"FROM deliveries WHERE until < ? ORDER BY until LIMIT ?)", before, limit)
		return err
	})
	return int(deleted), err
}
