package flows

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/statistics"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	newestTasks   = 20   // number of tasks in a summary
	mostSchedules = 1000 // maximum number of schedules that are read for the next task
)

type flowsInput struct {
	route.Paging
	Q    string `query:"q" maxLength:"200" doc:"Text in the slug, name or description of the flows; case-insensitive."`
	Sort string `query:"sort" enum:"-created,name" default:"-created" doc:"Order: newest first, or by slug."`
	With string `query:"with" enum:"summary" doc:"summary: include the statistics of each flow."`
}

func (h *Handler) listFlows(ctx context.Context, in *flowsInput) (*route.Response[wire.Page[wire.Flow]], error) {
	list := h.newestFlows
	if in.Q != "" || in.Sort == "name" || in.Cursor != "" {
		list = h.sortedFlows
	}
	flows, next, err := list(ctx, in)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Flow]{Items: make([]wire.Flow, len(flows)), Next: next}
	for i := range flows {
		page.Items[i] = toFlow(&flows[i])
	}
	if in.With == "summary" && len(flows) > 0 {
		err = h.addSummaries(ctx, page.Items)
	}
	return &route.Response[wire.Page[wire.Flow]]{Body: page}, err
}

// newestFlows returns a page of flows, the newest first.
func (h *Handler) newestFlows(ctx context.Context, in *flowsInput) (flows []persistence.Flow, next string, err error) {
	if flows, _, err = h.Store.ListFlows(ctx, 0, in.Limit+1); err != nil {
		return nil, "", err
	}
	flows, next = cutFlows(flows, in.Limit)
	return flows, next, nil
}

// sortedFlows returns a page of flows in order of slug. It reads all flows, because there are few.
func (h *Handler) sortedFlows(ctx context.Context, in *flowsInput) (flows []persistence.Flow, next string, err error) {
	at, continued, err := in.ParseCursor()
	if err != nil {
		return nil, "", err
	}
	if flows, _, err = h.Store.ListFlows(ctx, 0, 0); err != nil {
		return nil, "", err
	}
	word := strings.ToLower(in.Q)
	flows = slices.DeleteFunc(flows, func(f persistence.Flow) bool {
		return !strings.Contains(strings.ToLower(f.Slug+"\n"+f.Name+"\n"+f.Description), word)
	})
	if in.Sort == "name" {
		slices.SortFunc(flows, func(a, b persistence.Flow) int { return cmp.Compare(sortedBy(&a), sortedBy(&b)) })
		if continued {
			flows = slices.DeleteFunc(flows, func(f persistence.Flow) bool { return sortedBy(&f) <= at.Name })
		}
	} else if continued {
		flows = flowsAfter(flows, at)
	}
	flows, next = cutFlows(flows, in.Limit)
	return flows, next, nil
}

// cutFlows returns a page of a list and the cursor of the next page.
func cutFlows(flows []persistence.Flow, limit int) (page []persistence.Flow, next string) {
	page, more := route.CutPage(flows, limit)
	if more {
		last := &page[len(page)-1]
		next = route.Cursor{At: last.CreatedAt, Name: sortedBy(last)}.String()
	}
	return page, next
}

// flowsAfter returns the flows after a cursor in the list of newest flows. If the flow of the
// cursor was deleted, flows with the same creation time may be repeated.
func flowsAfter(flows []persistence.Flow, at route.Cursor) []persistence.Flow {
	for i := range flows {
		if sortedBy(&flows[i]) == at.Name {
			return flows[i+1:]
		}
	}
	older := slices.IndexFunc(flows, func(f persistence.Flow) bool { return f.CreatedAt <= at.At })
	if older < 0 {
		return nil
	}
	return flows[older:]
}

// sortedBy returns the unique sort key of a flow.
func sortedBy(f *persistence.Flow) string { return strings.ToLower(catalog.NameOf(f)) + "\n" + f.ID }

// addSummaries adds recent statistics to flows.
func (h *Handler) addSummaries(ctx context.Context, flows []wire.Flow) error {
	now := h.Engine.Now()
	since := now.Add(-24 * time.Hour).UnixMilli()
	since -= since % persistence.StatsHour
	of, ids := make(map[string]*wire.FlowSummary, len(flows)), make([]string, len(flows))
	for i := range flows {
		ids[i] = flows[i].ID
		flows[i].Summary = &wire.FlowSummary{Since: wire.Millis(since), LatestTasks: []wire.TaskState{}}
		of[ids[i]] = flows[i].Summary
	}
	rows, err := h.Store.ReadStats(ctx, persistence.StatsFilter{Flows: ids,
		Width: persistence.StatsHour, From: since, To: now.UnixMilli() + 1})
	if err != nil {
		return err
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Flow == rows[0].Flow {
			n++
		}
		of[rows[0].Flow].Tasks = statistics.ToTaskStats(statistics.SumCounts(rows[:n]))
		rows = rows[n:]
	}
	marks, err := h.Store.NewestOf(ctx, ids, newestTasks)
	if err != nil {
		return err
	}
	for _, m := range marks {
		of[m.Flow].LatestTasks = append(of[m.Flow].LatestTasks, wire.TaskState{ID: m.ID, State: m.Status,
			CreatedAt: wire.Millis(m.CreatedAt)})
	}
	return h.nextByTheClock(ctx, of)
}

// nextByTheClock adds the time of the next scheduled task to each summary.
func (h *Handler) nextByTheClock(ctx context.Context, of map[string]*wire.FlowSummary) error {
	schedules, err := h.Store.ListSchedules(ctx, persistence.ScheduleFilter{Limit: mostSchedules})
	if err != nil {
		return err
	}
	for i := range schedules {
		p := &schedules[i]
		f := of[p.FlowID]
		if f == nil {
			continue
		}
		if at := wire.Millis(p.NextSlot()); !at.IsZero() && (f.NextAt.IsZero() || at.Before(f.NextAt.Time)) {
			f.NextAt = at
		}
	}
	return nil
}
