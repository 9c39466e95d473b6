package v1

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
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// historyHandler serves what has happened in tasks: events, steps, runs, logs, traces and
// timelines.
type historyHandler struct {
	router    *apiRouter
	positions *queuePositions
	feeds     *feedSource

	store     api.Store
	reader    api.Reader
	engine    engine.Engine
	payloads  *payload.Store
	logger    *slog.Logger
	heartbeat time.Duration
	timelines *timelineCache
}

func (h *historyHandler) addHistoryRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-events", method: http.MethodGet, path: "/v1/tasks/{task}/events", tag: "history",
		summary: "Read a task's events, oldest first",
		text: "The history of a task is its list of events. The id of the last one is where " +
			"to go on later."}, h.listEvents)
	registerOperation(rt, apiOperation{id: "list-runs", method: http.MethodGet, path: "/v1/tasks/{task}/runs", tag: "history",
		summary: "Read a task's attempts and steps, in order of their beginning",
		text: "Of a long history a page of those that are picked may be shorter than asked " +
			"for, or empty, while next leads on."}, h.listRuns)
	registerOperation(rt, apiOperation{id: "get-waiting", method: http.MethodGet, path: "/v1/tasks/{task}/waiting", tag: "history",
		summary: "Why is it waiting?", text: "Of a step with many units the first ones are named."}, h.listWaits)
	registerOperation(rt, apiOperation{id: "stream-events", method: http.MethodGet, path: "/v1/tasks/{task}/stream", tag: "history",
		summary: "Follow a task's events",
		text: "Server-sent events: each message is an event, its id the place to go on from (Last-Event-ID). " +
			"The last message has the type end and says how the task ended; after it a client " +
			"should close the stream. Comments show that a silent stream is alive."}, h.streamTask)
	h.describeStream("/v1/tasks/{task}/stream",
		"OK; data of each message is an Event, of the message with the type end an End", refTo[wire.Event])
}

// parsePosition parses the id of an event, or the number of a row, which stands for the end of that
// row; "" is the beginning.
func parsePosition(where, text string) (stream.Position, error) {
	p, ok := stream.ParsePosition(text)
	if !ok {
		return p, newInvalidError(where,
			"send the id of an event, such as 12.0, or the seq of a row",
			"%.40q is no place in a history", text)
	}
	return p, nil
}

type eventsInput struct {
	TaskPath
	Values
	After  string   `query:"after" maxLength:"40" doc:"id of the last event that is known; absent = from the beginning"`
	Before string   `query:"before" maxLength:"40" doc:"of the newest first: id of the event that the page ends before; absent = the newest one is told, too"`
	Order  string   `query:"order" enum:"asc,desc" default:"asc" doc:"desc: the newest first; next is what to send as before"`
	Type   []string `query:"type,explode" maxItems:"50" doc:"only those of one of these types"`
	Node   string   `query:"node" maxLength:"1000" doc:"only those of this node"`
	Text   string   `query:"q" maxLength:"200" doc:"only those that have this text in their node, key, error, reason, note or worker, in letters of either case"`
	Limit  int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many items at most"`
}

func (h *historyHandler) listEvents(ctx context.Context, in *eventsInput) (*bodyResponse[wire.Page[wire.Event]], error) {
	from, err := parsePosition("query.after", in.After)
	if err != nil {
		return nil, err
	}
	if _, err := h.store.Task(ctx, in.Task); err != nil {
		return nil, noTask(in.Task, err)
	}
	page, err := h.eventPage(ctx, in, from)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		in.cutValues(h.payloads, &page.Items[i].Input, &page.Items[i].Output, &page.Items[i].Details, &page.Items[i].Params)
	}
	return &bodyResponse[wire.Page[wire.Event]]{*page}, nil
}

// eventPage returns a page in the requested order.
func (h *historyHandler) eventPage(ctx context.Context, in *eventsInput, from stream.Position) (*wire.Page[wire.Event], error) {
	switch {
	case in.Order == "desc" && in.After != "":
		return nil, newInvalidError("query.after", "send before, or order=asc", "the newest first go back from an event")
	case in.Order != "desc" && in.Before != "":
		return nil, newInvalidError("query.before", "send after, or order=desc", "the oldest first go on from an event")
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

// pageBytes bounds the size of an answer, and part that of a read: a row may hold a thousand
// events, and an event a megabyte.
const pageBytes = 4 << 20

var part = persistence.Part{Rows: 50, Bytes: pageBytes}

// eventsAfter returns one page. Large events make it shorter than requested.
func (h *historyHandler) eventsAfter(ctx context.Context, task string, from stream.Position,
	limit int) (items []wire.Event, more bool, err error) {
	items = []wire.Event{}
	size := 0
	for after := from.Since(); ; {
		rows, err := h.store.Rows(ctx, task, after, part)
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
			if items, more = cutPage(append(items, events...), limit); more {
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

// toEvent converts an event without the token of a claim. A reader of the history must not be able
// to report in a worker's name.
func toEvent(at stream.Position, e *flow.Event) wire.Event {
	return wire.Event{
		ID: at.String(), Seq: at.Seq, Type: string(e.Type), At: wire.Millis(e.At), Place: toPlace(e.Address()),
		State: e.Status, Action: e.Action, Next: e.Next, Input: e.Input, InputRef: e.InputRef,
		Output: e.Output, Error: e.Error, Details: e.Details, Metrics: e.Metrics, Reason: e.Reason,
		Total: e.Total, Index: e.Index, Kept: e.Kept, Due: wire.Millis(e.Due), Carrier: e.Carrier, Worker: e.Worker, URL: e.URL, Log: e.Log,
		Until: wire.Millis(e.Until), Note: e.Note, Key: e.Key, By: e.By, Version: e.Version, Params: e.Params, Request: e.Request,
	}
}

type runsInput struct {
	TaskPath
	Scope string   `query:"scope" maxLength:"20000" doc:"only those in this scope, / = the task's root"`
	Node  string   `query:"node" maxLength:"1000" doc:"only those of this node"`
	Unit  int      `query:"unit" minimum:"-1" default:"-1" doc:"only those of the unit with this index; -1 = all"`
	State []string `query:"state,explode" enum:"running,ok,error,timeout,canceled,skipped" doc:"only those in one of these states"`
	Values
	Paging
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

// Limits of the search for one page of a history: parts that are read, and runs of each part.
const (
	partsLooked = 8
	runsLooked  = 500
)

func (h *historyHandler) listRuns(ctx context.Context, in *runsInput) (*bodyResponse[wire.Page[wire.Run]], error) {
	after, err := in.parseHistoryCursor()
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Run]{Items: []wire.Run{}}
	at, most := after, in.Limit
	if !in.wantsAll() {
		most = runsLooked
	}
	for range partsLooked {
		runs, err := h.reader.Runs(ctx, in.Task, at, most, pageBytes)
		if err != nil {
			return nil, noTask(in.Task, err)
		}
		for i := range runs.Runs {
			if !in.matchesRun(&runs.Runs[i]) {
				continue
			}
			if len(page.Items) == in.Limit {
				page.Next = historyCursor(at)
				return &bodyResponse[wire.Page[wire.Run]]{page}, nil
			}
			run := toRun(in.Task, &runs.Runs[i])
			in.cutValues(h.payloads, &run.Input, &run.Output, &run.Details)
			page.Items, at = append(page.Items, run), runs.Places[i]
		}
		if !runs.More {
			return &bodyResponse[wire.Page[wire.Run]]{page}, nil
		}
		if at = runs.Next; len(page.Items) == in.Limit || in.wantsAll() {
			break
		}
	}
	page.Next = historyCursor(at)
	return &bodyResponse[wire.Page[wire.Run]]{page}, nil
}

func toRun(task string, r *flow.NodeRun) wire.Run {
	run := wire.Run{
		Place: toPlace(r.Address), Kind: string(r.Kind), Branch: r.Branch, State: string(r.Status), Queue: r.Queue, Note: r.Note,
		Input: r.Input, Output: r.Output, Error: r.Error, Details: r.Details, Metrics: r.Metrics,
		Reason: r.Reason, Action: r.Action, Worker: r.Worker, URL: r.URL, Log: r.Log,
		StartedAt: wire.Millis(r.StartedAt), EndedAt: wire.Millis(r.EndedAt),
	}
	if r.Kind == flow.RunAttempt {
		run.Job = flow.JobID(task, r.Address)
	}
	return run
}

func (h *historyHandler) listWaits(ctx context.Context, in *struct{ TaskPath }) (*bodyResponse[wire.Waiting], error) {
	view, err := h.reader.View(ctx, in.Task)
	if err != nil {
		return nil, noTask(in.Task, err)
	}
	answer := wire.Waiting{State: string(view.State.Status), Waits: []wire.Wait{}}
	for _, w := range flow.Waiting(view.State) {
		answer.Waits = append(answer.Waits, toWait(in.Task, &w))
	}
	if err := h.positions.inLine(ctx, in.Task, answer.Waits); err != nil {
		return nil, err
	}
	return &bodyResponse[wire.Waiting]{answer}, nil
}

// describeStream adds the description of a stream, which the framework cannot derive.
func (h *historyHandler) describeStream(path, text string, message func(huma.Registry) *huma.Schema) {
	schemas := h.router.huma.OpenAPI().Components.Schemas
	end := refTo[wire.End](schemas)
	h.router.huma.OpenAPI().Paths[path].Get.Responses["200"] = &huma.Response{
		Description: text,
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{AnyOf: []*huma.Schema{message(schemas), end}}}},
	}
}
