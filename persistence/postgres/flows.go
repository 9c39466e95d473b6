package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// flowStore stores flows and their versions.
type flowStore struct{ *database }

const (
	flowQuery    = "SELECT id, coalesce(slug, ''), name, description, created_at, tried FROM troupe.flows "
	versionQuery = "SELECT id, flow_id, number, definition, status, hash, created_at FROM troupe.flow_versions "
	// versionsQuery reads versions without their definitions, which may be large.
	versionsQuery = "SELECT id, flow_id, number, NULL, status, hash, created_at FROM troupe.flow_versions "
)

func (s flowStore) CreateFlow(ctx context.Context, f persistence.Flow) error {
	_, err := s.execCount(ctx, "create a flow",
		"INSERT INTO troupe.flows (id, slug, name, description, created_at, tried) VALUES ($1, "+
			"nullif($2, ''), $3, $4, $5, $6)",
		f.ID, f.Slug, f.Name, f.Description, f.CreatedAt, f.Tried)
	return err
}

func (s flowStore) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	return findByKey(ctx, s.database, "read a flow", listing.ScanFlow, flowQuery+"WHERE id = $1", id)
}

func (s flowStore) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	return findByKey(ctx, s.database, "read a flow", listing.ScanFlow, flowQuery+"WHERE slug = $1", slug)
}

func (s flowStore) ListFlows(ctx context.Context, offset, limit int) ([]persistence.Flow, int, error) {
	total, err := readFirst(ctx, s.database, "count flows", listing.ScanValue[int], "SELECT count(*) FROM troupe.flows WHERE NOT tried")
	if err != nil {
		return nil, 0, err
	}
	list, err := readRows(ctx, s.database, "list flows", listing.ScanFlow,
		flowQuery+"WHERE NOT tried ORDER BY created_at DESC, n DESC LIMIT nullif($1::bigint, 0) OFFSET $2", limit, offset)
	return list, *total, err
}

func (s flowStore) ListTried(ctx context.Context, before int64, limit int) ([]persistence.Flow, error) {
	return readRows(ctx, s.database, "list tried flows", listing.ScanFlow,
		flowQuery+"WHERE tried AND created_at < $1 ORDER BY created_at, n LIMIT $2", before, limit)
}

// lockVersions takes the advisory lock for publishing a version or deleting the flow.
const lockVersions = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))"

// publishing is the name of the lock for versions.
const publishing = "publish"

// CreateVersion takes the lock in a separate statement, so that the next statement sees the
// versions of the previous lock holder.
func (s flowStore) CreateVersion(ctx context.Context, v persistence.Version) error {
	var batch pgx.Batch
	batch.Queue(lockVersions, v.FlowID, s.schema.lockID(publishing))
	created := false
	batch.Queue(`INSERT INTO troupe.flow_versions (id, flow_id, number, definition, status, hash, created_at)
		SELECT $1, id, CASE $3::int WHEN 0 THEN (SELECT coalesce(max(number), 0) + 1 FROM troupe.flow_versions WHERE flow_id = $2) ELSE $3 END, $4, $5, $6, $7
		FROM troupe.flows WHERE id = $2`,
		v.ID, v.FlowID, v.Number, nonNilBytes(v.Definition), v.Status, v.Hash, v.CreatedAt).Exec(func(tag pgconn.CommandTag) error {
		created = tag.RowsAffected() > 0
		return nil
	})
	err := s.inOne(ctx, s.pool, &batch)
	if err == nil && !created {
		err = persistence.ErrNotFound
	}
	return wrapError("create a version", err)
}

func (s flowStore) Version(ctx context.Context, id string) (*persistence.Version, error) {
	return findByKey(ctx, s.database, "read a version", listing.ScanVersion, versionQuery+"WHERE id = $1", id)
}

func (s flowStore) FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error) {
	if number == 0 {
		return findByKey(ctx, s.database, "find a version", listing.ScanVersion,
			versionQuery+"WHERE flow_id = $1 AND status = 'published' ORDER BY number DESC, n LIMIT 1", flowID)
	}
	return findByKey(ctx, s.database, "find a version", listing.ScanVersion,
		versionQuery+"WHERE flow_id = $1 AND number = $2::bigint ORDER BY n LIMIT 1", flowID, number)
}

func (s flowStore) ListVersions(ctx context.Context, flowID string) ([]persistence.Version, error) {
	return readRows(ctx, s.database, "list versions", listing.ScanVersion,
		versionsQuery+"WHERE flow_id = $1 ORDER BY number DESC, n", flowID)
}

// nonNilBytes returns an empty slice for nil.
func nonNilBytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
