package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// statStore keeps statistics.
type statStore struct{ *database }

// The statements of AddStats. A lock serializes concurrent calls, because counts are read,
// increased and written back.
const (
	lockStats = "SELECT pg_advisory_xact_lock($1)"

	// statsThere reads the rows with the given keys, one lookup for each. It compares the whole key
	// with >= and <= instead of =, so that the planner uses the primary key. Otherwise the planner
	// might use the index by age, which has many equal entries.
	statsThere = `SELECT s.* FROM unnest($1::text[], $2::bool[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[])
			d (flow, of_nodes, width, bucket, scope, node, version)
		CROSS JOIN LATERAL (SELECT ` + listing.StatsColumns + ` FROM troupe.stats WHERE ` + spot + ` >= ` + wanted + ` AND ` + spot + ` <= ` + wanted + ` LIMIT 1) s`
	spot   = "(flow, of_nodes, width, bucket, scope, node, version)"
	wanted = "(d.flow, d.of_nodes, d.width, d.bucket, d.scope, d.node, d.version)"

	putStats = `INSERT INTO troupe.stats (flow, of_nodes, width, bucket, scope, node, version, counts)
		SELECT * FROM unnest($1::text[], $2::bool[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bytea[]) AS d (flow)
			WHERE d.flow = '' OR (SELECT true FROM troupe.flows f WHERE f.id = d.flow)
		ON CONFLICT ` + spot + ` DO UPDATE SET counts = excluded.counts`

	deleteStats = `DELETE FROM troupe.stats WHERE ctid = ANY (ARRAY(SELECT ctid FROM ` +
		`troupe.stats WHERE width = $1 AND bucket < $2 ORDER BY bucket LIMIT $3))`
)

func (s statStore) AddStats(ctx context.Context, rows []persistence.StatsRow) error {
	rows = slices.DeleteFunc(slices.Clone(rows),
		func(r persistence.StatsRow) bool { return !isStatsText(r.Flow, r.Version, r.Scope, r.Node) })
	if len(rows) == 0 {
		return nil
	}
	return wrapError("add statistics", s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var there []persistence.StatsRow
			var batch pgx.Batch
			batch.Queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true)", strconv.FormatInt(frozen.Milliseconds(), 10))
			batch.Queue(lockStats, s.schema.lockID("stats"))
			batch.Queue(onlyIndexes)
			batch.Queue(statsThere, statsColumns(rows)...).Query(func(rows pgx.Rows) (err error) {
				there, err = listing.Collect(rows, listing.ScanStats)
				return err
			})
			if err := tx.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close(); err != nil {
				return err
			}
			sums := persistence.MergeStats(rows, there)
			counts := make([][]byte, len(sums))
			for i := range sums {
				counts[i] = sums[i].Counts.Append(nil)
			}
			_, err := tx.Exec(ctx, s.schema.qualify(putStats), append(statsColumns(sums), counts)...)
			return err
		})
	}))
}

// isStatsText reports whether names can be stored in a table. Rows with other names are skipped.
func isStatsText(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !flow.IsText(name) })
}

// statsColumns returns the spots of rows as columns.
func statsColumns(rows []persistence.StatsRow) []any {
	n := len(rows)
	flows, scopes, nodes, versions := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	ofNodes, widths, buckets := make([]bool, n), make([]int64, n), make([]int64, n)
	for i := range rows {
		r := &rows[i]
		flows[i], scopes[i], nodes[i], versions[i] = r.Flow, r.Scope, r.Node, r.Version
		ofNodes[i], widths[i], buckets[i] = r.OfNodes(), r.Width, r.Bucket
	}
	return []any{flows, ofNodes, widths, buckets, scopes, nodes, versions}
}

func (s statStore) ReadStats(ctx context.Context, f persistence.StatsFilter) ([]persistence.StatsRow, error) {
	if !isStatsText(append([]string{f.Version, f.Scope, f.Node}, f.Flows...)...) {
		return nil, nil
	}
	return readRows(ctx, s.database, "read statistics", listing.ScanStats, "SELECT "+listing.StatsColumns+` FROM troupe.stats
		WHERE flow = ANY ($1) AND of_nodes = $2 AND width = $3 AND bucket >= $4 AND bucket < $5
			AND ($6 = '' OR version = $6) AND ($7 = '' OR node = $7 AND scope = $8) ORDER BY flow, bucket, scope, node, version`,
		f.Flows, f.Nodes, f.Width, f.From, f.To, f.Version, f.Node, f.Scope)
}

func (s statStore) DeleteStats(ctx context.Context, width, before int64, limit int) (deleted int, err error) {
	err = s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, s.schema.qualify(deleteStats), width, before, limit)
		deleted = int(tag.RowsAffected())
		return err
	})
	return deleted, wrapError("delete statistics", err)
}
