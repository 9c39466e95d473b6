package sqlite

import (
	"context"
	"errors"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// flowStore keeps flows and their versions.
type flowStore struct{ *database }

const (
	flowQuery    = "SELECT id, coalesce(slug, ''), name, description, created_at, tried FROM flows "
	versionQuery = "SELECT id, flow_id, number, definition, status, hash, created_at FROM flow_versions "
	// versionsQuery reads versions without their definitions, which may be large.
	versionsQuery = "SELECT id, flow_id, number, NULL, status, hash, created_at FROM flow_versions "
)

func (s flowStore) CreateFlow(ctx context.Context, f persistence.Flow) error {
	return s.inTransaction(ctx, "create a flow", func(t writeTx) error {
		_, err := t.execCount("INSERT INTO flows (id, slug, name, description, created_at, tried) VALUES (?, nullif(?, ''), ?, ?, ?, ?)",
			f.ID, f.Slug, f.Name, f.Description, f.CreatedAt, f.Tried)
		return mapDuplicate(err)
	})
}

func (s flowStore) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	return readFirst(ctx, &s.readers, "read a flow", listing.ScanFlow, flowQuery+"WHERE id = ?", id)
}

func (s flowStore) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	return readFirst(ctx, &s.readers, "read a flow", listing.ScanFlow, flowQuery+"WHERE slug = ?", slug)
}

func (s flowStore) ListFlows(ctx context.Context, offset, limit int) ([]persistence.Flow, int, error) {
	if limit == 0 {
		limit = -1
	}
	total, err := readFirst(ctx, &s.readers, "count flows", listing.ScanValue[int], "SELECT count(*) FROM flows WHERE tried = 0")
	if err != nil {
		return nil, 0, err
	}
	list, err := readRows(ctx, &s.readers, "list flows", listing.ScanFlow,
		flowQuery+"WHERE tried = 0 ORDER BY created_at DESC, n DESC LIMIT ? OFFSET ?", limit, offset)
	return list, *total, err
}

func (s flowStore) ListTried(ctx context.Context, before int64, limit int) ([]persistence.Flow, error) {
	return readRows(ctx, &s.readers, "list tried flows", listing.ScanFlow,
		flowQuery+"WHERE tried <> 0 AND created_at < ? ORDER BY created_at, n LIMIT ?", before, limit)
}

func (s flowStore) CreateVersion(ctx context.Context, v persistence.Version) error {
	return s.inTransaction(ctx, "create a version", func(t writeTx) error {
		n, err := t.execCount(`INSERT INTO flow_versions (id, flow_id, number, definition, status, hash, created_at)
			SELECT ?1, ?2, CASE ?3 WHEN 0 THEN (SELECT coalesce(max(number), 0) + 1 FROM flow_versions WHERE flow_id = ?2) ELSE ?3 END, ?4, ?5, ?6, ?7
			WHERE EXISTS (SELECT 1 FROM flows WHERE id = ?2)`,
			v.ID, v.FlowID, v.Number, nonNilBytes(v.Definition), v.Status, v.Hash, v.CreatedAt)
		if err == nil && n == 0 {
			return persistence.ErrNotFound
		}
		return mapDuplicate(err)
	})
}

func (s flowStore) Version(ctx context.Context, id string) (*persistence.Version, error) {
	return readFirst(ctx, &s.readers, "read a version", listing.ScanVersion, versionQuery+"WHERE id = ?", id)
}

func (s flowStore) FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error) {
	if number == 0 {
		return readFirst(ctx, &s.readers, "find a version", listing.ScanVersion,
			versionQuery+"WHERE flow_id = ? AND status = 'published' ORDER BY number DESC, n LIMIT 1", flowID)
	}
	return readFirst(ctx, &s.readers, "find a version", listing.ScanVersion,
		versionQuery+"WHERE flow_id = ? AND number = ? ORDER BY n LIMIT 1", flowID, number)
}

func (s flowStore) ListVersions(ctx context.Context, flowID string) ([]persistence.Version, error) {
	return readRows(ctx, &s.readers, "list versions", listing.ScanVersion,
		versionsQuery+"WHERE flow_id = ? ORDER BY number DESC, n", flowID)
}

func mapDuplicate(err error) error {
	if e := new(driver.Error); errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return persistence.ErrDuplicate
	}
	return err
}
