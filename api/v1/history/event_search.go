package history

import (
	"context"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// eventsLooked is the number of events searched for one page. Then the page ends, and next
// continues the search.
const eventsLooked = 20_000

// wantsAll reports whether no filter is set.
func (in *eventsInput) wantsAll() bool { return len(in.Type) == 0 && in.Node == "" && in.Text == "" }

// matchesEvent reports whether an event passes the filter.
func (in *eventsInput) matchesEvent(e *wire.Event) bool {
	if len(in.Type) > 0 && !slices.Contains(in.Type, e.Type) || in.Node != "" && e.Node != in.Node {
		return false
	}
	if in.Text == "" {
		return true
	}
	text := strings.ToLower(in.Text)
	return slices.ContainsFunc([]string{e.Node, e.Key, e.Error, e.Reason, e.StatusText, e.Worker},
		func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// eventsPicked returns a page of matching events after a position.
func (h *Handler) eventsPicked(ctx context.Context, in *eventsInput, from stream.Position) (*wire.Page[wire.Event], error) {
	page := &wire.Page[wire.Event]{Items: []wire.Event{}}
	for looked := 0; looked < eventsLooked; {
		events, more, err := h.eventsAfter(ctx, in.Task, from, 500)
		if err != nil {
			return nil, err
		}
		for i := range events {
			if !in.matchesEvent(&events[i]) {
				continue
			}
			if len(page.Items) == in.Limit {
				page.Next = page.Items[len(page.Items)-1].ID
				return page, nil
			}
			page.Items = append(page.Items, events[i])
		}
		if !more {
			return page, nil
		}
		page.Next = events[len(events)-1].ID
		from, _ = stream.ParsePosition(page.Next)
		looked += len(events)
	}
	return page, nil
}

// rowsBack is the number of rows in one read backwards.
const rowsBack = 50

// eventsBefore returns a page of matching events before a position, or before the end.
func (h *Handler) eventsBefore(ctx context.Context, in *eventsInput) (*wire.Page[wire.Event], error) {
	before, err := ParsePosition("query.before", in.Before)
	if err != nil {
		return nil, err
	}
	if in.Before == "" {
		last, err := h.lastRow(ctx, in.Task)
		if err != nil {
			return nil, err
		}
		before = stream.Position{Seq: last + 1}
	}
	page, looked := &wire.Page[wire.Event]{Items: []wire.Event{}}, 0
	for to := before.Seq; to > 0; {
		first := max(to-rowsBack, 0)
		rows, err := h.rowsUpTo(ctx, in.Task, first, to)
		if err != nil {
			return nil, err
		}
		for _, row := range slices.Backward(rows) {
			events, err := eventsOf(engine.Row(row), stream.After(0))
			if err != nil {
				return nil, err
			}
			looked += len(events)
			for _, e := range slices.Backward(events) {
				at, _ := stream.ParsePosition(e.ID)
				if !at.Before(before) || !in.matchesEvent(&e) {
					continue
				}
				if len(page.Items) == in.Limit {
					page.Next = page.Items[in.Limit-1].ID
					return page, nil
				}
				page.Items = append(page.Items, e)
			}
		}
		if to = first; to > 0 && looked >= eventsLooked {
			page.Next = stream.Position{Seq: to + 1}.String()
			return page, nil
		}
	}
	return page, nil
}

// rowsUpTo returns the rows with numbers above after and up to to.
func (h *Handler) rowsUpTo(ctx context.Context, task string, after, to int64) (all []persistence.Row, err error) {
	for after < to {
		rows, err := h.Store.Rows(ctx, task, after, persistence.Part{Rows: int(to - after), Bytes: pageBytes})
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			break
		}
		all, after = append(all, rows...), rows[len(rows)-1].Seq
	}
	return all, nil
}

// lastRow returns the number of the last row of a task's journal.
func (h *Handler) lastRow(ctx context.Context, task string) (int64, error) {
	view, err := h.Reader.View(ctx, task)
	if err != nil {
		return 0, catalog.LocateTaskError(task, err)
	}
	return view.Seq, nil
}
