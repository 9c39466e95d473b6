// Package statistics serves counts and durations: of a flow, over time, and as an overview.
package statistics

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/cluster"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves counts, durations and the overview.
type Handler struct {
	Catalog *catalog.Flows
	Finder  *catalog.Tasks
	Workers *work.WorkerHandler

	Store    api.Store
	Engine   engine.Engine
	Cluster  cluster.Cluster
	overview *cachedAnswer[wire.Overview]
	slow     *cachedAnswer[[]wire.SlowerFlow]
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.overview, h.slow = newFresh[wire.Overview](), newFresh[[]wire.SlowerFlow]()
	h.addOverviewRoutes(rt)
	h.addStatsRoutes(rt)
}

func (h *Handler) addStatsRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "get-stats", Method: http.MethodGet, Path: "/v1/flows/{flow}/stats", Tag: "flows",
		Summary: "Get the statistics of a flow",
		Text: "Numbers of started and ended tasks, their durations, and the same for each node. " +
			"Numbers of the last five seconds may be missing, and those that a member had not " +
			"stored before it crashed."}, h.getStats)
	route.Register(rt, route.Operation{ID: "get-series", Method: http.MethodGet, Path: "/v1/stats", Tag: "flows",
		Summary: "Get statistics over time",
		Text: "Statistics of all flows, of one flow, or of a node: the numbers of GET " +
			"/v1/flows/{flow}/stats for each point. By minute for two days, by hour for ninety."},
		h.getSeries)
}

// StatsTime selects the time range of statistics.
type StatsTime struct {
	Window string    `query:"window" enum:"1h,24h,7d" default:"24h" doc:"Length of the time range up to now, if from is absent."`
	From   time.Time `query:"from" doc:"Start of the time range, rounded down to a minute or an hour."`
	To     time.Time `query:"to" doc:"End of the time range; absent = now."`
}

var windows = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// shortTime is the longest range that is read by minutes; longer ranges are read by whole hours.
// minutesKept is a little less than two days, for which minutes are stored.
const (
	shortTime   = 3 * int64(time.Hour/time.Millisecond)
	minutesKept = 47 * int64(time.Hour/time.Millisecond)
	longestTime = 92 * 24 * time.Hour
)

// timeRange is a time range in two parts: minutes are read from from to hours, and hours from hours
// to to.
type timeRange struct{ from, hours, to int64 }

func (in *StatsTime) resolveRange(now time.Time) (timeRange, error) {
	to, from := in.To, in.From
	if to.IsZero() || to.After(now) {
		to = now
	}
	if from.IsZero() {
		from = to.Add(-windows[in.Window])
	}
	switch {
	case !from.Before(to):
		return timeRange{}, route.NewInvalidError("query.from", "send a time before to, and before now",
			"there is no time between from and to")
	case to.Sub(from) > longestTime:
		return timeRange{}, route.NewInvalidError("query.from",
			"send a later one: statistics are kept for 90 days", "from is too long before to")
	}
	return spanOf(from.UnixMilli(), to.UnixMilli(), now.UnixMilli()), nil
}

func spanOf(from, to, now int64) timeRange {
	from, hour := from-from%persistence.StatsMinute, from-from%persistence.StatsHour
	switch {
	case now-from > minutesKept:
		return timeRange{hour, hour, to}
	case to-from <= shortTime:
		return timeRange{from, to, to}
	case hour < from:
		hour += persistence.StatsHour
	}
	return timeRange{from, hour, to}
}

// countedIn reads the counts of a time range. The current hour is read as a whole.
func (h *Handler) countedIn(ctx context.Context, f persistence.StatsFilter, at timeRange) ([]persistence.StatsRow, error) {
	var all []persistence.StatsRow
	for _, part := range []struct{ width, from, to int64 }{{persistence.StatsMinute, at.from,
		at.hours}, {persistence.StatsHour, at.hours, at.to}} {
		if part.from >= part.to {
			continue
		}
		f.Width, f.From, f.To = part.width, part.from, part.to
		rows, err := h.Store.ReadStats(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

type statsInput struct {
	catalog.FlowPath
	StatsTime
	Version int `query:"version" minimum:"0" doc:"Number of the version; 0 = any."`
}

func (h *Handler) getStats(ctx context.Context, in *statsInput) (*route.Response[wire.FlowStats], error) {
	f, err := h.Catalog.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	at, err := in.resolveRange(h.Engine.Now())
	if err != nil {
		return nil, err
	}
	filter := persistence.StatsFilter{Flows: []string{f.ID}}
	if in.Version > 0 {
		v, err := h.Catalog.FindVersion(ctx, "query.version", f, in.Version)
		if err != nil {
			return nil, err
		}
		filter.Version = v.ID
	}
	tasks, err := h.countedIn(ctx, filter, at)
	if err != nil {
		return nil, err
	}
	filter.Nodes = true
	nodes, err := h.countedIn(ctx, filter, at)
	if err != nil {
		return nil, err
	}
	return &route.Response[wire.FlowStats]{Body: wire.FlowStats{Flow: catalog.NameOf(f), Version: in.Version,
		Since: wire.Millis(at.from), Until: wire.Millis(at.to),
		Tasks: ToTaskStats(SumCounts(tasks)), Nodes: toNodes(nodes, at)}}, nil
}

// SumCounts adds up the counts of rows.
func SumCounts(rows []persistence.StatsRow) *stats.Counts {
	sum := &stats.Counts{}
	for i := range rows {
		sum.Add(&rows[i].Counts)
	}
	return sum
}

// ToTaskStats converts the counts of tasks.
func ToTaskStats(c *stats.Counts) wire.TaskStats {
	return wire.TaskStats{Started: c.Began, Completed: c.Completed, Failed: c.Failed,
		Canceled: c.Canceled, Duration: toTimes(&c.Took), LastFailed: c.LastFailed}
}

func toTimes(s *stats.Sketch) wire.Percentiles { return wire.Percentiles(s.Times()) }

// trendParts is the number of parts of a time range for which a p95 is computed.
const trendParts = 12

// nodeSum holds the counts of a node for a time range and its parts.
type nodeSum struct {
	all   stats.Counts
	parts [trendParts]stats.Sketch
}

// toNodes sums the counts of all versions for each node.
func toNodes(rows []persistence.StatsRow, at timeRange) []wire.NodeStats {
	sums := map[[2]string]*nodeSum{}
	for i := range rows {
		r := &rows[i]
		key := [2]string{r.Scope, r.Node}
		if sums[key] == nil {
			sums[key] = &nodeSum{}
		}
		sums[key].all.Add(&r.Counts)
		part := (max(r.Bucket, at.from) - at.from) * trendParts / max(at.to-at.from, 1)
		sums[key].parts[min(part, trendParts-1)].Add(&r.Counts.Took)
	}
	nodes := make([]wire.NodeStats, 0, len(sums))
	for key, sum := range sums {
		c := &sum.all
		n := wire.NodeStats{Scope: key[0], Key: key[1], Count: c.Ended(), Failed: c.Failed,
			Retried: c.Retried, Skipped: c.Skipped, Units: c.Units,
			Duration: toTimes(&c.Took), LastFailed: c.LastFailed, P95Trend: make([]int64, trendParts)}
		if c.Wait.N() > 0 {
			wait := toTimes(&c.Wait)
			n.Wait = &wait
		}
		for i := range sum.parts {
			n.P95Trend[i] = sum.parts[i].Quantile(95)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b wire.NodeStats) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key)) })
	return nodes
}
