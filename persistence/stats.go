package persistence

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/flow/stats"
)

// Stats stores statistics of tasks, counted by minute and by hour. Only these numbers are affected
// by a double or missing count.
type Stats interface {
	// AddStats adds counts to the stored ones, in one transaction. Concurrent calls add up. Each
	// spot appears once, and its scope has at most StatsScope bytes. Rows of unknown flows are
	// skipped, because their flow was deleted after the count.
	AddStats(ctx context.Context, rows []StatsRow) error
	// ReadStats returns rows in the order of their spots.
	ReadStats(ctx context.Context, f StatsFilter) ([]StatsRow, error)
	// DeleteStats deletes up to limit rows of a width whose bucket begins before a time.
	DeleteStats(ctx context.Context, width, before int64, limit int) (int, error)
}

// Widths of buckets, in milliseconds.
const (
	StatsMinute int64 = 60_000
	StatsHour         = 60 * StatsMinute
)

// StatsScope is the maximum length of a spot's scope in bytes, because spots must fit into an
// index.
const StatsScope = 1500

// StatsRow is the counts of one bucket.
type StatsRow struct {
	StatsSpot
	Counts stats.Counts
}

// StatsSpot is the key of a bucket.
type StatsSpot struct {
	stats.Key
	Width, Bucket int64 // Bucket is the start time of the bucket
}

// OfNodes reports whether the spot is about a node instead of tasks.
func (s *StatsSpot) OfNodes() bool { return s.Node != "" }

// StatsFilter selects rows. Zero fields do not filter, except Flows, Nodes and Width.
type StatsFilter struct {
	Flows       []string // ids; "" means the sum over all flows
	Nodes       bool     // rows about nodes instead of tasks
	Scope, Node string   // the one node to select
	Version     string   // id
	Width       int64
	From, To    int64 // start times of buckets: from inclusive, to exclusive
}

// Picks reports whether the filter selects the row of a spot.
func (f *StatsFilter) Picks(s *StatsSpot) bool {
	return slices.Contains(f.Flows, s.Flow) && s.OfNodes() == f.Nodes && (f.Node == "" || s.Node == f.Node && s.Scope == f.Scope) &&
		(f.Version == "" || s.Version == f.Version) && s.Width == f.Width && s.Bucket >= f.From && s.Bucket < f.To
}

// Compare returns the order of two spots in ReadStats.
func (s *StatsSpot) Compare(o *StatsSpot) int {
	return cmp.Or(cmp.Compare(s.Flow, o.Flow), cmp.Compare(s.Bucket, o.Bucket),
		cmp.Compare(s.Scope, o.Scope), cmp.Compare(s.Node, o.Node), cmp.Compare(s.Version, o.Version))
}

// MergeStats returns rows with the stored counts of the same spots added.
func MergeStats(rows, there []StatsRow) []StatsRow {
	known := make(map[StatsSpot]*StatsRow, len(there))
	for i := range there {
		known[there[i].StatsSpot] = &there[i]
	}
	merged := make([]StatsRow, 0, len(rows))
	for _, r := range rows {
		if old := known[r.StatsSpot]; old != nil {
			old.Counts.Add(&r.Counts)
			r.Counts = old.Counts
		}
		merged = append(merged, r)
	}
	return merged
}
