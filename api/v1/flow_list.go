package v1

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	newestTasks   = 20   // in a summary
	mostSchedules = 1000 // in which the next task is looked for
)

type flowsInput struct {
	Paging
	Q    string `query:"q" maxLength:"200" doc:"only flows with this text in their slug, name or description, in letters of either case"`
	Sort string `query:"sort" enum:"-created,name" default:"-created" doc:"the newest first, or by slug"`
	With string `query:"with" enum:"summary" doc:"tell of each flow how it goes"`
}

func (s *service) listFlows(ctx context.Context, in *flowsInput) (*body[wire.Page[wire.Flow]], error) {
	list := s.newestFlows
	if in.Q != "" || in.Sort == "name" {
		list = s.sortedFlows
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
		err = s.summarize(ctx, page.Items)
	}
	return &body[wire.Page[wire.Flow]]{page}, err
}

// newestFlows counts from the end of the list, because new flows are put before its beginning.
func (s *service) newestFlows(ctx context.Context, in *flowsInput) (flows []persistence.Flow, next string, err error) {
	at, continued, err := in.position()
	if err != nil {
		return nil, "", err
	}
	offset := 0
	if continued {
		_, total, err := s.Store.ListFlows(ctx, 0, 1)
		if err != nil {
			return nil, "", err
		}
		offset = max(total-int(at.at), 0)
	}
	flows, total, err := s.Store.ListFlows(ctx, offset, in.Limit)
	if left := total - offset - len(flows); left > 0 {
		next = cursor{at: int64(left)}.String()
	}
	return flows, next, err
}

// sortedFlows looks at all flows: there are not many of them.
func (s *service) sortedFlows(ctx context.Context, in *flowsInput) (flows []persistence.Flow, next string, err error) {
	at, continued, err := in.position()
	if err != nil {
		return nil, "", err
	}
	if flows, _, err = s.Store.ListFlows(ctx, 0, 0); err != nil {
		return nil, "", err
	}
	word := strings.ToLower(in.Q)
	flows = slices.DeleteFunc(flows, func(f persistence.Flow) bool {
		return !strings.Contains(strings.ToLower(f.Slug+"\n"+f.Name+"\n"+f.Description), word)
	})
	if in.Sort == "name" {
		slices.SortFunc(flows, func(a, b persistence.Flow) int { return cmp.Compare(sortedBy(&a), sortedBy(&b)) })
		if continued {
			flows = slices.DeleteFunc(flows, func(f persistence.Flow) bool { return sortedBy(&f) <= at.name })
		}
	} else if continued {
		flows = after(flows, at)
	}
	flows, more := cut(flows, in.Limit)
	if more {
		last := &flows[len(flows)-1]
		next = cursor{last.CreatedAt, sortedBy(last)}.String()
	}
	return flows, next, nil
}

// after are the flows behind a place in the list of the newest, also when the one that was there is gone.
func after(flows []persistence.Flow, at cursor) []persistence.Flow {
	for i := range flows {
		switch {
		case sortedBy(&flows[i]) == at.name:
			return flows[i+1:]
		case flows[i].CreatedAt < at.at:
			return flows[i:]
		}
	}
	return nil
}

// sortedBy is a text that no other flow has.
func sortedBy(f *persistence.Flow) string { return strings.ToLower(nameOf(f)) + "\n" + f.ID }

// summarize tells of flows how they go.
func (s *service) summarize(ctx context.Context, flows []wire.Flow) error {
	now := s.Engine.Now()
	since := now.Add(-24 * time.Hour).UnixMilli()
	since -= since % persistence.StatsHour
	of, ids := make(map[string]*wire.FlowSummary, len(flows)), make([]string, len(flows))
	for i := range flows {
		ids[i] = flows[i].ID
		flows[i].Summary = &wire.FlowSummary{Since: wire.Millis(since), Newest: []wire.TaskState{}}
		of[ids[i]] = flows[i].Summary
	}
	rows, err := s.Store.ReadStats(ctx, persistence.StatsFilter{Flows: ids, Width: persistence.StatsHour, From: since, To: now.UnixMilli() + 1})
	if err != nil {
		return err
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Flow == rows[0].Flow {
			n++
		}
		of[rows[0].Flow].Tasks = toTaskStats(sumOf(rows[:n]))
		rows = rows[n:]
	}
	marks, err := s.Store.NewestOf(ctx, ids, newestTasks)
	if err != nil {
		return err
	}
	for _, m := range marks {
		of[m.Flow].Newest = append(of[m.Flow].Newest, wire.TaskState{ID: m.ID, State: m.Status, CreatedAt: wire.Millis(m.CreatedAt)})
	}
	return s.nextByTheClock(ctx, of)
}

// nextByTheClock tells when schedules begin tasks of flows.
func (s *service) nextByTheClock(ctx context.Context, of map[string]*wire.FlowSummary) error {
	schedules, err := s.Store.ListSchedules(ctx, persistence.ScheduleFilter{Limit: mostSchedules})
	if err != nil {
		return err
	}
	for i := range schedules {
		p := &schedules[i]
		f := of[p.FlowID]
		if f == nil {
			continue
		}
		if at := wire.Millis(p.NextSlot()); !at.IsZero() && (f.Next.IsZero() || at.Before(f.Next.Time)) {
			f.Next = at
		}
	}
	return nil
}
