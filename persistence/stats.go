package persistence

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-engine/troupe/flow/stats"
)

// Stats keeps how tasks have gone, counted by minutes and by hours. What is counted twice, or not,
// does no harm but to these numbers.
type Stats interface {
	// AddStats adds to what is there, in one transaction. Whoever adds at the same time adds to the
	// same. A spot is named once, and its scope has StatsScope bytes at most. What is of a flow
	// that is not there is left out: it was counted just before that was deleted.
	AddStats(ctx context.Context, rows []StatsRow) error
	// ReadStats lists rows in the order of their spots.
	ReadStats(ctx context.Context, f StatsFilter) ([]StatsRow, error)
	// DeleteStats deletes up to limit rows of a width whose bucket begins before a time.
	DeleteStats(ctx context.Context, width, before int64, limit int) (int, error)
}

// Widths of buckets, in milliseconds.
const (
	StatsMinute int64 = 60_000
	StatsHour         = 60 * StatsMinute
)

// StatsScope is how long the scope of a spot may be: spots have to fit into an index.
const StatsScope = 1500

// StatsRow is what was counted in one bucket.
type StatsRow struct {
	StatsSpot
	Counts stats.Counts
}

// StatsSpot is where it was counted.
type StatsSpot struct {
	stats.Key
	Width, Bucket int64 // Bucket is when it begins
}

// OfNodes reports whether it is about a node, and not about tasks.
func (s *StatsSpot) OfNodes() bool { return s.Node != "" }

// StatsFilter picks rows. Zero fields do not filter, but for Flows, Nodes and Width.
type StatsFilter struct {
	Flows       []string // ids; "" is all of them counted together
	Nodes       bool     // those about nodes, else those about tasks
	Scope, Node string   // together the only node that is meant
	Version     string   // id
	Width       int64
	From, To    int64 // when buckets begin: from inclusive, to exclusive
}

// Picks reports whether a row is meant.
func (f *StatsFilter) Picks(s *StatsSpot) bool {
	return slices.Contains(f.Flows, s.Flow) && s.OfNodes() == f.Nodes && (f.Node == "" || s.Node == f.Node && s.Scope == f.Scope) &&
		(f.Version == "" || s.Version == f.Version) && s.Width == f.Width && s.Bucket >= f.From && s.Bucket < f.To
}

// Compare orders spots.
func (s *StatsSpot) Compare(o *StatsSpot) int {
	return cmp.Or(cmp.Compare(s.Flow, o.Flow), cmp.Compare(s.Bucket, o.Bucket), cmp.Compare(s.Scope, o.Scope), cmp.Compare(s.Node, o.Node), cmp.Compare(s.Version, o.Version))
}

// MergeStats adds to rows what is there already in their spots.
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
