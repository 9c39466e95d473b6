// Package history serves the history of tasks as pages and streams: events, steps, attempts,
// values, logs, digests, timelines and traces.
package history

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/v1/work"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// Handler serves the history of tasks: events, steps, runs, logs, traces and timelines.
type Handler struct {
	Router    *route.Router
	Positions *work.Positions
	Feeds     *FeedSource

	Store     api.Store
	Reader    api.Reader
	Engine    engine.Engine
	Payloads  *payload.Store
	Logger    *slog.Logger
	Heartbeat time.Duration
	timelines *timelineCache
}

// AddRoutes adds the routes of the handler.
func (h *Handler) AddRoutes(rt *route.Router) {
	h.timelines = newTimelines()
	h.addCompareRoutes(rt)
	h.addStepRoutes(rt)
	h.addDigestRoutes(rt)
	h.addValueRoutes(rt)
	h.addHistoryRoutes(rt)
	h.addTraceRoutes(rt)
	h.addTimelineRoutes(rt)
	h.addLogRoutes(rt)
	h.addStreamRoutes(rt)
}

func (h *Handler) addHistoryRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-events", Method: http.MethodGet, Path: "/v1/tasks/{task}/events", Tag: "history",
		Summary: "List a task's events",
		Text: "Oldest first. The events are the history of the task. Continue later after the ID of " +
			"the last one."}, h.listEvents)
	route.Register(rt, route.Operation{ID: "list-runs", Method: http.MethodGet, Path: "/v1/tasks/{task}/runs", Tag: "history",
		Summary: "List a task's attempts and steps",
		Text: "In the order of their start. For a long history, a page with filters may be shorter " +
			"than its limit, or empty, and still have next."}, h.listRuns)
	route.Register(rt, route.Operation{ID: "get-waiting", Method: http.MethodGet, Path: "/v1/tasks/{task}/waiting", Tag: "history",
		Summary: "List the reasons why a task waits",
		Text:    "For a step with many units: those of the first ones."}, h.listWaits)
	route.Register(rt, route.Operation{ID: "stream-events", Method: http.MethodGet, Path: "/v1/tasks/{task}/stream", Tag: "history",
		Summary: "Follow a task's events",
		Text: "Server-sent events: each message is an event, and its ID is the position to resume " +
			"from (Last-Event-ID). The last message has the type end and contains the task's " +
			"outcome; the client should close the stream after it. Comments show that a silent " +
			"stream is alive."}, h.streamTask)
	h.describeStream("/v1/tasks/{task}/stream",
		"OK; data of each message is an Event, of the message with the type end an End", route.SchemaOf[wire.Event])
}

// ParsePosition parses the id of an event, or the number of a row, which means the end of that row.
// "" means the beginning.
func ParsePosition(where, text string) (stream.Position, error) {
	p, ok := stream.ParsePosition(text)
	if !ok {
		return p, route.NewInvalidError(where,
			"send the id of an event, such as 12.0, or the seq of a row",
			"%.40q is not a position in a history", text)
	}
	return p, nil
}

type eventsInput struct {
	catalog.TaskPath
	render.Values
	After  string   `query:"after" maxLength:"40" doc:"ID of the last known event; absent = from the beginning."`
	Before string   `query:"before" maxLength:"40" doc:"For order desc: ID of the event before which the page ends; absent = it starts with the newest one."`
	Order  string   `query:"order" enum:"asc,desc" default:"asc" doc:"Order of the events. desc: newest first, with next to send as before."`
	Type   []string `query:"type,explode" maxItems:"50" doc:"Types of the events; events match any of them."`
	Node   string   `query:"node" maxLength:"1000" doc:"Key of the node."`
	Text   string   `query:"q" maxLength:"200" doc:"Text in the node, key, error, reason, status text or worker of the events; case-insensitive."`
	Limit  int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of items."`
}

func (h *Handler) listEvents(ctx context.Context, in *eventsInput) (*route.Response[wire.Page[wire.Event]], error) {
	from, err := ParsePosition("query.after", in.After)
	if err != nil {
		return nil, err
	}
	if _, err := h.Store.Task(ctx, in.Task); err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	page, err := h.eventPage(ctx, in, from)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		in.CutValues(h.Payloads, &page.Items[i].Input, &page.Items[i].Output, &page.Items[i].Details, &page.Items[i].Params)
	}
	return &route.Response[wire.Page[wire.Event]]{Body: *page}, nil
}

// eventPage returns a page of events in the requested order.
func (h *Handler) eventPage(ctx context.Context, in *eventsInput, from stream.Position) (*wire.Page[wire.Event], error) {
	switch {
	case in.Order == "desc" && in.After != "":
		return nil, route.NewInvalidError("query.after", "send before, or order=asc", "after does not apply to order=desc")
	case in.Order != "desc" && in.Before != "":
		return nil, route.NewInvalidError("query.before", "send after, or order=desc", "before does not apply to order=asc")
	case in.Order == "desc":
		return h.eventsBefore(ctx, in)
	case !in.wantsAll():
		return h.eventsPicked(ctx, in, from)
	}
	items, more, err := h.eventsAfter(ctx, in.Task, from, in.Limit)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Event]{Items: items}
	if more {
		page.Next = items[len(items)-1].ID
	}
	return &page, nil
}

// pageBytes bounds the size of an answer. part bounds one read, because a row may have a thousand
// events of a megabyte.
const pageBytes = 4 << 20

var part = persistence.Part{Rows: 50, Bytes: pageBytes}

// eventsAfter returns a page of events after a position. Large events make the page shorter than
// limit.
func (h *Handler) eventsAfter(ctx context.Context, task string, from stream.Position,
	limit int) (items []wire.Event, more bool, err error) {
	items = []wire.Event{}
	size := 0
	for after := from.Since(); ; {
		rows, err := h.Store.Rows(ctx, task, after, part)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			if len(items) > 0 && size > pageBytes {
				return items, true, nil
			}
			events, err := eventsOf(engine.Row(row), from)
			if err != nil {
				return nil, false, err
			}
			if items, more = route.CutPage(append(items, events...), limit); more {
				return items, true, nil
			}
			after = row.Seq
			size += len(row.Events)
		}
		if !part.Full(rows) {
			return items, false, nil
		}
	}
}

// eventsOf returns the events of a row that follow a position.
func eventsOf(row engine.Row, from stream.Position) ([]wire.Event, error) {
	events, err := flow.DecodeEvents(row.Events)
	if err != nil {
		return nil, err
	}
	list := make([]wire.Event, 0, len(events))
	for i := range events {
		if !from.Covers(row.Seq, i) {
			list = append(list, toEvent(stream.Position{Seq: row.Seq, Index: i}, &events[i]))
		}
	}
	return list, nil
}

// toEvent converts an event without the claim token. With the token, a reader could report in the
// worker's name.
func toEvent(at stream.Position, e *flow.Event) wire.Event {
	return wire.Event{
		ID: at.String(), Seq: at.Seq, Type: string(e.Type), At: wire.Millis(e.At), Place: render.ToPlace(e.Address()),
		State: e.Status, Action: e.Action, Next: e.Next, Input: e.Input, InputRef: e.InputRef,
		Output: e.Output, Error: e.Error, Details: e.Details, Metrics: e.Metrics, Reason: e.Reason,
		Total: e.Total, Index: e.Index, ReusedUnits: e.Kept, DueAt: wire.Millis(e.Due), Member: e.Carrier,
		Worker: e.Worker, URL: e.URL, Log: e.Log,
		Until: wire.Millis(e.Until), StatusText: e.Note, Key: e.Key, SentBy: e.By, Version: e.Version,
		Params: e.Params, RequestID: e.Request,
	}
}

type runsInput struct {
	catalog.TaskPath
	Scope string   `query:"scope" maxLength:"20000" doc:"Path of the scope, / = the task's root."`
	Node  string   `query:"node" maxLength:"1000" doc:"Key of the node."`
	Unit  int      `query:"unit" minimum:"-1" default:"-1" doc:"Index of the unit; -1 = all."`
	State []string `query:"state,explode" enum:"running,ok,error,timeout,canceled,skipped" doc:"States; entries match any of them."`
	render.Values
	route.Paging
}

// matchesRun reports whether a run passes the filter.
func (in *runsInput) matchesRun(r *flow.NodeRun) bool {
	return (in.Scope == "" || r.Scope == strings.TrimPrefix(in.Scope, rootScope)) && (in.Node == "" || r.Address.Node == in.Node) &&
		(in.Unit < 0 || r.Kind == flow.RunAttempt && r.Unit == in.Unit) && (len(in.State) == 0 ||
		slices.Contains(in.State, string(r.Status)))
}

// wantsAll reports whether no filter is set.
func (in *runsInput) wantsAll() bool {
	return in.Scope == "" && in.Node == "" && in.Unit < 0 && len(in.State) == 0
}

// partsLooked and the following bound the search for one page: the number of parts to read, and the
// runs of each part.
const (
	partsLooked = 8
	runsLooked  = 500
)

func (h *Handler) listRuns(ctx context.Context, in *runsInput) (*route.Response[wire.Page[wire.Run]], error) {
	after, err := in.ParseHistoryCursor()
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Run]{Items: []wire.Run{}}
	at, most := after, in.Limit
	if !in.wantsAll() {
		most = runsLooked
	}
	for range partsLooked {
		runs, err := h.Reader.Runs(ctx, in.Task, at, most, pageBytes)
		if err != nil {
			return nil, catalog.LocateTaskError(in.Task, err)
		}
		for i := range runs.Runs {
			if !in.matchesRun(&runs.Runs[i]) {
				continue
			}
			if len(page.Items) == in.Limit {
				page.Next = route.HistoryCursor(at)
				return &route.Response[wire.Page[wire.Run]]{Body: page}, nil
			}
			run := toRun(in.Task, &runs.Runs[i])
			in.CutValues(h.Payloads, &run.Input, &run.Output, &run.Details)
			page.Items, at = append(page.Items, run), runs.Places[i]
		}
		if !runs.More {
			return &route.Response[wire.Page[wire.Run]]{Body: page}, nil
		}
		if at = runs.Next; len(page.Items) == in.Limit || in.wantsAll() {
			break
		}
	}
	page.Next = route.HistoryCursor(at)
	return &route.Response[wire.Page[wire.Run]]{Body: page}, nil
}

func toRun(task string, r *flow.NodeRun) wire.Run {
	run := wire.Run{
		Place: render.ToPlace(r.Address), Kind: string(r.Kind), Branch: r.Branch, State: string(r.Status),
		Queue: r.Queue, StatusText: r.Note,
		Input: r.Input, Output: r.Output, Error: r.Error, Details: r.Details, Metrics: r.Metrics,
		Reason: r.Reason, Action: r.Action, Worker: r.Worker, URL: r.URL, Log: r.Log,
		StartedAt: wire.Millis(r.StartedAt), EndedAt: wire.Millis(r.EndedAt),
	}
	if r.Kind == flow.RunAttempt {
		run.Job = flow.JobID(task, r.Address)
	}
	return run
}

func (h *Handler) listWaits(ctx context.Context, in *struct{ catalog.TaskPath }) (*route.Response[wire.WaitReasons], error) {
	view, err := h.Reader.View(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	answer := wire.WaitReasons{State: string(view.State.Status), Waits: []wire.WaitReason{}}
	for _, w := range flow.Waiting(view.State) {
		answer.Waits = append(answer.Waits, render.ToWait(in.Task, &w))
	}
	if err := h.Positions.AddToWaits(ctx, in.Task, answer.Waits); err != nil {
		return nil, err
	}
	return &route.Response[wire.WaitReasons]{Body: answer}, nil
}

// describeStream adds the OpenAPI description of a stream, which the framework cannot derive.
func (h *Handler) describeStream(path, text string, message func(huma.Registry) *huma.Schema) {
	schemas := h.Router.API.OpenAPI().Components.Schemas
	end := route.SchemaOf[wire.TaskEnd](schemas)
	h.Router.API.OpenAPI().Paths[path].Get.Responses["200"] = &huma.Response{
		Description: text,
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{AnyOf: []*huma.Schema{message(schemas), end}}}},
	}
}
