package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// scheduleStore keeps schedules.
type scheduleStore struct{ *database }

const scheduleQuery = "SELECT " + listing.ScheduleColumns + " FROM troupe.schedules "

// PutSchedule locks the flow, so that a concurrent deletion of the flow also deletes the schedule.
func (s scheduleStore) PutSchedule(ctx context.Context, sc persistence.Schedule) error {
	body, err := json.Marshal(sc)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	flowThere, written := false, false
	batch.Queue("SELECT FROM troupe.flows WHERE id = $1 FOR KEY SHARE", sc.FlowID).Exec(func(tag pgconn.CommandTag) error {
		flowThere = tag.RowsAffected() > 0
		return nil
	})
	write := batch.Queue(`INSERT INTO troupe.schedules (id, name, flow_id, shard, revision, due_at, body)
		SELECT $1, $2, id, $4, 1, $5, $6 FROM troupe.flows WHERE id = $3`, sc.ID, sc.Name, sc.FlowID, persistence.ShardOf(sc.ID), sc.Due, body)
	if sc.Revision != 0 {
		write.SQL, write.Arguments = `UPDATE troupe.schedules s SET flow_id = f.id, revision = s.revision + 1, due_at = $4, body = $5
			FROM troupe.flows f WHERE f.id = $3 AND s.id = $1 AND s.revision = $2`, []any{sc.ID, sc.Revision, sc.FlowID, sc.Due, body}
	}
	write.Exec(func(tag pgconn.CommandTag) error {
		written = tag.RowsAffected() > 0
		return nil
	})
	err = s.inOne(ctx, s.pool, &batch)
	switch {
	case err != nil:
	case !flowThere:
		err = persistence.ErrNotFound
	case !written:
		err = persistence.ErrStale
	}
	return wrapError("put a schedule", err)
}

func (s scheduleStore) Schedule(ctx context.Context, name string) (*persistence.Schedule, error) {
	return findByKey(ctx, s.database, "read a schedule", listing.ScanSchedule, scheduleQuery+"WHERE name = $1", name)
}

func (s scheduleStore) ListSchedules(ctx context.Context, f persistence.ScheduleFilter) ([]persistence.Schedule, error) {
	if !flow.IsText(f.After) || !flow.IsText(f.FlowID) {
		return []persistence.Schedule{}, nil
	}
	if f.FlowID != "" {
		return readRows(ctx, s.database, "list schedules", listing.ScanSchedule,
			scheduleQuery+"WHERE flow_id = $1 AND name > $2 ORDER BY name LIMIT nullif($3::bigint, 0)", f.FlowID, f.After, f.Limit)
	}
	return readRows(ctx, s.database, "list schedules", listing.ScanSchedule,
		scheduleQuery+"WHERE name > $1 ORDER BY name LIMIT nullif($2::bigint, 0)", f.After, f.Limit)
}

func (s scheduleStore) DueSchedules(ctx context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	return readRows(ctx, s.database, "list due schedules", listing.ScanSchedule,
		scheduleQuery+"WHERE due_at > 0 AND due_at <= $1 AND ($2::int[] IS NULL OR shard = "+
			"ANY($2)) ORDER BY due_at, id LIMIT $3", by, []int(shards), limit)
}

func (s scheduleStore) DeleteSchedule(ctx context.Context, id string) error {
	_, err := s.execCount(ctx, "delete a schedule", "DELETE FROM troupe.schedules WHERE id = $1", id)
	return err
}
