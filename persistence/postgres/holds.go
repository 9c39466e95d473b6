package postgres

import (
	"context"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// holdStore stores which tasks refer to which objects of other tasks.
type holdStore struct{ *database }

// Hold locks the other task, so that its deletion waits until the holds are stored.
func (s holdStore) Hold(ctx context.Context, task, from string, at int64, objects []persistence.Object) error {
	owners, names := make([]string, len(objects)), make([]string, len(objects))
	for i, o := range objects {
		owners[i], names[i] = o.Owner, o.Name
	}
	there, err := readFirst(ctx, s.database, "hold objects", listing.ScanValue[int],
		`WITH origin AS MATERIALIZED (SELECT id FROM troupe.tasks WHERE id = $2 FOR KEY SHARE),
		held AS (INSERT INTO troupe.holds AS h (owner, object, task, at) SELECT DISTINCT o.owner, o.name, $1, $3::bigint
			FROM origin, unnest($4::text[], $5::text[]) AS o(owner, name) ORDER BY 1, 2
			ON CONFLICT (owner, object, task) DO UPDATE SET at = greatest(h.at, excluded.at))
		SELECT count(*) FROM origin`, task, from, at, owners, names)
	if err == nil && *there == 0 {
		return persistence.ErrUnknown
	}
	return err
}

func (s holdStore) Gone(ctx context.Context, tasks []string) ([]string, error) {
	return readRows(ctx, s.database, "look for tasks", listing.ScanValue[string],
		"SELECT id FROM unnest($1::text[]) AS u(id) WHERE NOT EXISTS (SELECT FROM troupe.tasks "+
			"AS t WHERE t.id = u.id)", tasks)
}

func (s holdStore) Held(ctx context.Context, owner string) ([]string, error) {
	return readRows(ctx, s.database, "list held objects", listing.ScanValue[string],
		"SELECT DISTINCT object FROM troupe.holds WHERE owner = $1 ORDER BY object", owner)
}

// DropHolds checks the age of each hold again when deleting it, because Hold may have renewed it
// meanwhile.
func (s holdStore) DropHolds(ctx context.Context, before int64, limit int) ([]string, error) {
	return readRows(ctx, s.database, "drop holds", listing.ScanValue[string],
		`DELETE FROM troupe.holds WHERE at < $1 AND (owner, object, task) IN (
			SELECT owner, object, task FROM troupe.holds AS h WHERE at < $1 AND NOT EXISTS (SELECT FROM troupe.tasks WHERE id = h.task) LIMIT $2)
		RETURNING owner`, before, limit)
}
