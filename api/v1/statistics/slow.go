package statistics

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	slowAge   = time.Minute // maximum age of an answer
	slowMost  = 5           // maximum number of slow flows in an answer
	slowAmong = 500         // number of newest flows that are compared
	slowTasks = 10          // minimum number of ended tasks to judge a flow
	slowLeast = 100         // milliseconds; tasks below this duration are never slow
)

// slowFlows returns the flows whose durations of the last day are longer than those of the week
// before.
func (h *Handler) slowFlows(ctx context.Context) (*[]wire.SlowerFlow, error) {
	flows, _, err := h.Store.ListFlows(ctx, 0, slowAmong)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(flows))
	for i := range flows {
		ids[i] = flows[i].ID
	}
	now := h.Engine.Now().UnixMilli()
	day := now - 24*persistence.StatsHour
	lately, err := h.durationsByFlow(ctx, ids, day, now+1)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return lately[id] == nil || lately[id].N() < slowTasks || lately[id].Quantile(99) < slowLeast
	})
	before, err := h.durationsByFlow(ctx, ids, day-7*24*persistence.StatsHour, day)
	if err != nil {
		return nil, err
	}
	slow := []wire.SlowerFlow{}
	for i := range flows {
		now, then := lately[flows[i].ID], before[flows[i].ID]
		if now == nil || then == nil || then.N() < slowTasks || 2*now.Quantile(99) < 3*then.Quantile(99) {
			continue
		}
		slow = append(slow, wire.SlowerFlow{Flow: catalog.NameOf(&flows[i]), P99: now.Quantile(99), Before: then.Quantile(99)})
	}
	slices.SortStableFunc(slow, func(a, b wire.SlowerFlow) int {
		return cmp.Compare(float64(b.P99)/float64(max(b.Before, 1)), float64(a.P99)/float64(max(a.Before, 1)))
	})
	slow = slow[:min(len(slow), slowMost)]
	return &slow, nil
}

// durationsByFlow returns the durations of tasks that ended in a range of hours, by flow.
func (h *Handler) durationsByFlow(ctx context.Context, ids []string, from, to int64) (map[string]*stats.Sketch, error) {
	rows, err := h.Store.ReadStats(ctx, persistence.StatsFilter{Flows: ids, Width: persistence.StatsHour, From: from, To: to})
	took := map[string]*stats.Sketch{}
	for i := range rows {
		if took[rows[i].Flow] == nil {
			took[rows[i].Flow] = &stats.Sketch{}
		}
		took[rows[i].Flow].Add(&rows[i].Counts.Took)
	}
	return took, err
}
