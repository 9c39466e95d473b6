package tasks

import (
	"context"
	"strings"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

type listTasksInput struct {
	route.Paging
	catalog.TaskPick
	Sort string `query:"sort" enum:"-created,created,-ended,ended" default:"-created" doc:"Order: - means newest first. By end: only ended tasks."`
}

func (h *Handler) listTasks(ctx context.Context, in *listTasksInput) (*route.Response[wire.Page[wire.TaskSummary]], error) {
	at, continued, err := in.ParseCursor()
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.TaskSummary]{Items: []wire.TaskSummary{}}
	f, err := h.Finder.ToFilter(ctx, &in.TaskPick)
	if err != nil {
		return nil, err
	}
	f.Limit = in.Limit + 1
	f.ByEnd, f.Oldest = strings.HasSuffix(in.Sort, "ended"), in.Sort != "" && in.Sort[0] != '-'
	if continued {
		f.Before = persistence.Spot{CreatedAt: at.At, ID: at.Name}
	}
	if f.Through, err = h.Finder.FindSearchBound(ctx, f); err != nil {
		return nil, err
	}
	rows, err := h.Store.ListTasks(ctx, f)
	if err != nil {
		return nil, err
	}
	rows, more := route.CutPage(rows, in.Limit)
	for i := range rows {
		page.Items = append(page.Items, render.ToSummary(&rows[i]))
	}
	switch {
	case more:
		page.Next = catalog.CursorOf(catalog.SpotOf(f, &rows[len(rows)-1]))
	case f.Through.ID != "":
		page.Next, page.SearchedUntil = catalog.CursorOf(f.Through), wire.Millis(f.Through.CreatedAt)
	}
	return &route.Response[wire.Page[wire.TaskSummary]]{Body: page}, nil
}

type countTasksInput struct {
	catalog.TaskPick
	By string `query:"group_by" maxLength:"300" doc:"Grouping of the counts: state, flow, or label:NAME." example:"label:customer"`
}

func (h *Handler) countTasks(ctx context.Context, in *countTasksInput) (*route.Response[wire.TaskCount], error) {
	f, err := h.Finder.ToFilter(ctx, &in.TaskPick)
	if err != nil {
		return nil, err
	}
	by, err := byOf(in.By)
	if err != nil {
		return nil, err
	}
	answer, err := h.Finder.Count(ctx, f, by)
	switch {
	case err != nil:
		return nil, err
	case by != nil && by.Flow:
		if err := h.Finder.NameFlows(ctx, answer.Groups); err != nil {
			return nil, err
		}
	}
	return &route.Response[wire.TaskCount]{Body: *answer}, nil
}

// byOf parses a grouping; nil for "".
func byOf(text string) (*persistence.By, error) {
	switch name, ok := strings.CutPrefix(text, "label:"); {
	case text == "":
		return nil, nil
	case text == "state":
		return &persistence.By{}, nil
	case text == "flow":
		return &persistence.By{Flow: true}, nil
	case ok && name != "":
		return &persistence.By{Label: name}, nil
	default:
		return nil, route.NewInvalidError("query.group_by", "send state, flow or label:NAME", "tasks cannot be counted by %.80q", text)
	}
}
