package statistics

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// maxPoints is the maximum number of points in a series.
const maxPoints = 3000

type seriesInput struct {
	StatsTime
	Flow  string `query:"flow" maxLength:"128" doc:"Slug of the flow, or its ID; absent = all flows."`
	Node  string `query:"node" doc:"Key of a node of the flow; absent = statistics of tasks."`
	Scope string `query:"scope" doc:"Scope of the node, as in the graph of the flow."`
	Step  string `query:"step" enum:"1m,5m,15m,1h,6h,24h" doc:"Length of each point; the default fits the time range. Points shorter than an hour are available for the last two days."`
}

func (h *Handler) getSeries(ctx context.Context, in *seriesInput) (*route.Response[wire.StatsSeries], error) {
	at, err := in.resolveRange(h.Engine.Now())
	if err != nil {
		return nil, err
	}
	series := wire.StatsSeries{Scope: in.Scope, Node: in.Node}
	filter := persistence.StatsFilter{Flows: []string{""}, Nodes: in.Node != "", Node: in.Node, Scope: in.Scope}
	switch {
	case in.Flow != "":
		f, err := h.Catalog.FindFlow(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		filter.Flows, series.Flow = []string{f.ID}, catalog.NameOf(f)
	case in.Node != "":
		return nil, route.NewInvalidError("query.flow", "send the flow of the node", "node needs a flow")
	}
	step, err := in.pointWidth(at, h.Engine.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	at.from -= at.from % step
	if at.hours = at.to; step%persistence.StatsHour == 0 {
		at.hours = at.from
	}
	rows, err := h.countedIn(ctx, filter, at)
	if err != nil {
		return nil, err
	}
	series.Since, series.Until, series.StepMS, series.Points = wire.Millis(at.from), wire.Millis(at.to), step, toPoints(rows, at, step)
	return &route.Response[wire.StatsSeries]{Body: series}, nil
}

// pointWidth returns the width of a point in milliseconds.
func (in *seriesInput) pointWidth(at timeRange, now int64) (int64, error) {
	long := at.to - at.from
	if in.Step == "" {
		switch {
		case now-at.from > minutesKept:
			return persistence.StatsHour, nil
		case long <= shortTime:
			return persistence.StatsMinute, nil
		}
		return 15 * persistence.StatsMinute, nil
	}
	d, err := time.ParseDuration(in.Step)
	if err != nil {
		return 0, err // cannot happen, because all steps are valid durations
	}
	step := d.Milliseconds()
	switch {
	case step < persistence.StatsHour && now-at.from > minutesKept:
		return 0, route.NewInvalidError("query.step", "send 1h or longer, or a later from",
			"statistics older than two days exist only by hour")
	case long/step > maxPoints:
		return 0, route.NewInvalidError("query.step", "send a longer one", "the answer would have more than %d points", maxPoints)
	}
	return step, nil
}

func toPoints(rows []persistence.StatsRow, at timeRange, step int64) []wire.StatsPoint {
	sums := make([]stats.Counts, (at.to-at.from+step-1)/step)
	for i := range rows {
		if n := (rows[i].Bucket - at.from) / step; n >= 0 && n < int64(len(sums)) {
			sums[n].Add(&rows[i].Counts)
		}
	}
	points := make([]wire.StatsPoint, len(sums))
	for i := range sums {
		c := &sums[i]
		points[i] = wire.StatsPoint{At: wire.Millis(at.from + int64(i)*step), Started: c.Began,
			Completed: c.Completed, Failed: c.Failed, Canceled: c.Canceled,
			Skipped: c.Skipped, Retried: c.Retried, Duration: toTimes(&c.Took), Wait: toTimes(&c.Wait)}
	}
	return points
}
