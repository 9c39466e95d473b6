package v1

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// maxPoints is the greatest number of points in a series.
const maxPoints = 3000

type seriesInput struct {
	StatsTime
	Flow  string `query:"flow" maxLength:"128" doc:"slug of the only flow that is meant, or its id"`
	Node  string `query:"node" doc:"key of a node of that flow; absent = the tasks themselves"`
	Scope string `query:"scope" doc:"of the node, as in the graph of the flow"`
	Step  string `query:"step" enum:"1m,5m,15m,1h,6h,24h" doc:"how long each point is; absent = what suits the time. Steps shorter than an hour are there for the last two days"`
}

func (h *statsHandler) getSeries(ctx context.Context, in *seriesInput) (*bodyResponse[wire.StatsSeries], error) {
	at, err := in.resolveRange(h.engine.Now())
	if err != nil {
		return nil, err
	}
	series := wire.StatsSeries{Scope: in.Scope, Node: in.Node}
	filter := persistence.StatsFilter{Flows: []string{""}, Nodes: in.Node != "", Node: in.Node, Scope: in.Scope}
	switch {
	case in.Flow != "":
		f, err := h.catalog.flowBy(ctx, "query.flow", in.Flow)
		if err != nil {
			return nil, err
		}
		filter.Flows, series.Flow = []string{f.ID}, nameOf(f)
	case in.Node != "":
		return nil, newInvalidError("query.flow", "send the flow that the node is of", "a node is one of a flow")
	}
	step, err := in.pointWidth(at, h.engine.Now().UnixMilli())
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
	return &bodyResponse[wire.StatsSeries]{series}, nil
}

// pointWidth returns the duration of a point in milliseconds.
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
		return 0, err // cannot fail: the list of steps holds only durations
	}
	step := d.Milliseconds()
	switch {
	case step < persistence.StatsHour && now-at.from > minutesKept:
		return 0, newInvalidError("query.step", "send 1h or longer, or a later from", "of what is two days ago there are only hours")
	case long/step > maxPoints:
		return 0, newInvalidError("query.step", "send a longer one", "that would be more than %d points", maxPoints)
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
