package sqlite

import (
	"context"
	"strings"

	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// statStore keeps statistics.
type statStore struct{ *database }

func (s statStore) AddStats(ctx context.Context, rows []persistence.StatsRow) error {
	return s.inTransaction(ctx, "add statistics", func(t writeTx) error {
		for i := range rows {
			if err := t.addStats(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t writeTx) addStats(r *persistence.StatsRow) error {
	spot := []any{r.Flow, r.OfNodes(), r.Width, r.Bucket, r.Scope, r.Node, r.Version}
	var there []byte
	sum := &r.Counts
	err := t.queryOne("SELECT counts FROM stats WHERE flow = ? AND of_nodes = ? AND width = ? "+
		"AND bucket = ? AND scope = ? AND node = ? AND version = ?", spot, &there)
	switch {
	case err == nil:
		old, err := stats.Decode(there)
		if err != nil {
			return err
		}
		old.Add(sum)
		sum = &old
	case !isNone(err):
		return err
	}
	_, err = t.execCount(`INSERT OR REPLACE INTO stats (flow, of_nodes, width, bucket, scope, node, version, counts)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE ?1 = '' OR EXISTS (SELECT 1 FROM flows WHERE id = ?1)`,
		append(spot, sum.Append(nil))...)
	return err
}

func (s statStore) ReadStats(ctx context.Context, f persistence.StatsFilter) ([]persistence.StatsRow, error) {
	if len(f.Flows) == 0 {
		return nil, nil
	}
	args := make([]any, 0, len(f.Flows)+6)
	for _, flow := range f.Flows {
		args = append(args, flow)
	}
	where := "flow IN (?" + strings.Repeat(", ?", len(f.Flows)-1) + ") AND of_nodes = ? AND width = ? AND bucket >= ? AND bucket < ?"
	args = append(args, f.Nodes, f.Width, f.From, f.To)
	if f.Version != "" {
		where += " AND version = ?"
		args = append(args, f.Version)
	}
	if f.Node != "" {
		where += " AND scope = ? AND node = ?"
		args = append(args, f.Scope, f.Node)
	}
	return readRows(ctx, &s.readers, "read statistics", listing.ScanStats,
		"SELECT "+listing.StatsColumns+" FROM stats WHERE "+where+" ORDER BY flow, bucket, scope, node, version", args...)
}

func (s statStore) DeleteStats(ctx context.Context, width, before int64, limit int) (deleted int, err error) {
	err = s.inTransaction(ctx, "delete statistics", func(t writeTx) error {
		n, err := t.execCount(`DELETE FROM stats WHERE (flow, of_nodes, width, bucket, scope, node, version) IN
			(SELECT flow, of_nodes, width, bucket, scope, node, version FROM stats WHERE width = ? AND bucket < ? ORDER BY bucket LIMIT ?)`, width, before, limit)
		deleted = int(n)
		return err
	})
	return deleted, err
}
