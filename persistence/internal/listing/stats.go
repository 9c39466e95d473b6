package listing

import (
	"fmt"

	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// StatsColumns are the columns that ScanStats reads.
const StatsColumns = "flow, version, scope, node, width, bucket, counts"

// ScanStats reads StatsColumns.
func ScanStats(row Row, r *persistence.StatsRow) error {
	var counts []byte
	if err := row.Scan(&r.Flow, &r.Version, &r.Scope, &r.Node, &r.Width, &r.Bucket, &counts); err != nil {
		return err
	}
	var err error
	if r.Counts, err = stats.Decode(counts); err != nil {
		return fmt.Errorf("statistics of flow %q, node %q at %d: %w", r.Flow, r.Node, r.Bucket, err)
	}
	return nil
}
