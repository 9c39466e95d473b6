package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// viewStore keeps saved views of lists.
type viewStore struct{ *database }

func (s viewStore) SetView(ctx context.Context, v persistence.SavedView) error {
	return s.inTransaction(ctx, "set a view", func(x writeTx) error {
		_, err := x.execCount("INSERT INTO views ("+listing.ViewColumns+
			") VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET query = ?2, updated_at "+
			"= ?3, updated_by = ?4",
			v.Name, v.Query, v.UpdatedAt, v.UpdatedBy)
		return err
	})
}

func (s viewStore) ListViews(ctx context.Context) ([]persistence.SavedView, error) {
	return readRows(ctx, &s.readers, "list views", listing.ScanView, "SELECT "+listing.ViewColumns+" FROM views ORDER BY name")
}

func (s viewStore) DeleteView(ctx context.Context, name string) error {
	return s.inTransaction(ctx, "delete a view", func(x writeTx) error {
		n, err := x.execCount("DELETE FROM views WHERE name = ?", name)
		if err == nil && n == 0 {
			return persistence.ErrNotFound
		}
		return err
	})
}
