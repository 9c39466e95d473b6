package postgres

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// viewStore keeps saved views of lists.
type viewStore struct{ *database }

func (s viewStore) SetView(ctx context.Context, v persistence.SavedView) error {
	_, err := s.execCount(ctx, "set a view",
		"INSERT INTO troupe.views ("+listing.ViewColumns+
			") VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET query = $2, updated_at "+
			"= $3, updated_by = $4",
		v.Name, v.Query, v.UpdatedAt, v.UpdatedBy)
	return err
}

func (s viewStore) ListViews(ctx context.Context) ([]persistence.SavedView, error) {
	return readRows(ctx, s.database, "list views", listing.ScanView, "SELECT "+listing.ViewColumns+" FROM troupe.views ORDER BY name")
}

func (s viewStore) DeleteView(ctx context.Context, name string) error {
	n, err := s.execCount(ctx, "delete a view", "DELETE FROM troupe.views WHERE name = $1", name)
	if err == nil && n == 0 {
		return persistence.ErrNotFound
	}
	return err
}
