package sqlite

import (
	"context"
	"encoding/json"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// holdStore stores which tasks refer to which objects of other tasks.
type holdStore struct{ *database }

func (s holdStore) Hold(ctx context.Context, task, from string, at int64, objects []persistence.Object) error {
	return s.inTransaction(ctx, "hold objects", func(x writeTx) error {
		var there int
		if err := x.queryOne("SELECT count(*) FROM tasks WHERE id = ?", []any{from}, &there); err != nil {
			return err
		}
		if there == 0 {
			return persistence.ErrUnknown
		}
		for _, o := range objects {
			if _, err := x.execCount("INSERT INTO holds (owner, object, task, at) VALUES (?, ?, "+
				"?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)", o.Owner, o.Name, task,
				at); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s holdStore) Gone(ctx context.Context, tasks []string) ([]string, error) {
	list, err := json.Marshal(append([]string{}, tasks...)) // nil becomes [] instead of null
	if err != nil {
		return nil, err
	}
	return readRows(ctx, &s.readers, "look for tasks", listing.ScanValue[string],
		"SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = value)",
		string(list))
}

func (s holdStore) Held(ctx context.Context, owner string) ([]string, error) {
	return readRows(ctx, &s.readers, "list held objects", listing.ScanValue[string],
		"SELECT DISTINCT object FROM holds WHERE owner = ? ORDER BY object", owner)
}

func (s holdStore) DropHolds(ctx context.Context, before int64, limit int) (owners []string, err error) {
	err = s.inTransaction(ctx, "drop holds", func(x writeTx) error {
		owners, err = queryRows(x, listing.ScanValue[string], dropHolds, before, limit)
		return err
	})
	return owners, err
}

// dropHolds reads each hold once, regardless of the number of deletions.
const dropHolds = `DELETE FROM holds WHERE (owner, object, task) IN (SELECT owner, object, task FROM holds AS h
	WHERE at < ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = h.task) LIMIT ?) RETURNING owner`
