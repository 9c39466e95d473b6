package sqlite

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// scheduleStore stores schedules.
type scheduleStore struct{ *database }

const scheduleQuery = "SELECT " + listing.ScheduleColumns + " FROM schedules "

func (s scheduleStore) PutSchedule(ctx context.Context, sc persistence.Schedule) error {
	body, err := json.Marshal(sc)
	if err != nil {
		return err
	}
	return s.inTransaction(ctx, "put a schedule", func(t writeTx) error {
		var flow string
		if err := t.queryOne("SELECT id FROM flows WHERE id = ?", []any{sc.FlowID}, &flow); isNone(err) {
			return persistence.ErrNotFound
		} else if err != nil {
			return err
		}
		if sc.Revision == 0 {
			_, err := t.execCount("INSERT INTO schedules (id, name, flow_id, revision, due_at, "+
				"body) VALUES (?, ?, ?, 1, ?, ?)", sc.ID, sc.Name, sc.FlowID, sc.Due, body)
			return mapDuplicate(err)
		}
		n, err := t.execCount("UPDATE schedules SET flow_id = ?, revision = revision + 1, "+
			"due_at = ?, body = ? WHERE id = ? AND revision = ?",
			sc.FlowID, sc.Due, body, sc.ID, sc.Revision)
		if err == nil && n == 0 {
			return persistence.ErrStale
		}
		return err
	})
}

func (s scheduleStore) Schedule(ctx context.Context, name string) (*persistence.Schedule, error) {
	return readFirst(ctx, &s.readers, "read a schedule", listing.ScanSchedule, scheduleQuery+"WHERE name = ?", name)
}

func (s scheduleStore) ListSchedules(ctx context.Context, f persistence.ScheduleFilter) ([]persistence.Schedule, error) {
	limit := f.Limit
	if limit == 0 {
		limit = -1
	}
	if f.FlowID != "" {
		return readRows(ctx, &s.readers, "list schedules", listing.ScanSchedule,
			scheduleQuery+"WHERE flow_id = ? AND name > ? ORDER BY name LIMIT ?", f.FlowID, f.After, limit)
	}
	return readRows(ctx, &s.readers, "list schedules", listing.ScanSchedule,
		scheduleQuery+"WHERE name > ? ORDER BY name LIMIT ?", f.After, limit)
}

// DueSchedules filters by shard in memory without a shard column, because the only member requests
// all shards.
func (s scheduleStore) DueSchedules(ctx context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	some := limit
	if shards != nil {
		some = -1
	}
	list, err := readRows(ctx, &s.readers, "list due schedules", listing.ScanSchedule,
		scheduleQuery+"WHERE due_at > 0 AND due_at <= ? ORDER BY due_at, id LIMIT ?", by, some)
	list = slices.DeleteFunc(list, func(sc persistence.Schedule) bool { return !shards.Has(sc.ID) })
	return list[:min(limit, len(list))], err
}

func (s scheduleStore) DeleteSchedule(ctx context.Context, id string) error {
	return s.inTransaction(ctx, "delete a schedule", func(t writeTx) error {
		_, err := t.execCount("DELETE FROM schedules WHERE id = ?", id)
		return err
	})
}
