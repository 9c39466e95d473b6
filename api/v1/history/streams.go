package history

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const streamPath = "/v1/tasks/{task}/streams/{stream}"

func (h *Handler) addStreamRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-streams", Method: http.MethodGet, Path: "/v1/tasks/{task}/streams", Tag: "history",
		Summary: "List the streams of a task",
		Text:    "In order of their names, with their lengths. Steps write values to streams while they run."}, h.listStreams)
	route.Register(rt, route.Operation{ID: "read-stream", Method: http.MethodGet, Path: streamPath, Tag: "history",
		Summary: "Read or follow a stream of a task",
		Text: "Returns a page of values, from the offset from on. With Accept: text/event-stream it sends " +
			"server-sent events, from any member: each message is a value, and its ID is the offset of the " +
			"value, so a client that reconnects misses none (Last-Event-ID). Values arrive at most about a " +
			"second after they were written. The last message has the type end: the stream or the task has " +
			"ended. A stream without values yet is empty."}, h.readStream)
	h.describeValues()
}

// describeValues adds the OpenAPI description of a followed stream.
func (h *Handler) describeValues() {
	schemas := h.Router.API.OpenAPI().Components.Schemas
	h.Router.API.OpenAPI().Paths[streamPath].Get.Responses["200"] = &huma.Response{
		Description: "OK; data of each message is a StreamValue, of the message with the type end a EndOfStream",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: route.SchemaOf[wire.StreamPage](schemas)},
			"text/event-stream": {Schema: &huma.Schema{AnyOf: []*huma.Schema{
				route.SchemaOf[wire.StreamValue](schemas), route.SchemaOf[wire.EndOfStream](schemas)}}},
		},
	}
}

func (h *Handler) listStreams(ctx context.Context, in *catalog.TaskPath) (*route.Response[wire.Page[wire.Stream]], error) {
	task, err := h.Store.Task(ctx, in.Task)
	if err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	sizes, err := h.Store.StreamSizes(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Stream]{Items: make([]wire.Stream, len(sizes))}
	for i, s := range sizes {
		page.Items[i] = wire.Stream{Name: s.Name, Length: s.Length, Bytes: s.Bytes,
			Ended: s.Ended || flow.TaskStatus(task.Status).Ended()}
	}
	return &route.Response[wire.Page[wire.Stream]]{Body: page}, nil
}

type readStreamInput struct {
	catalog.TaskPath
	Stream      string `path:"stream" maxLength:"100" doc:"Name of the stream."`
	From        int64  `query:"from" minimum:"0" doc:"Offset of the first value, from 0."`
	Limit       int    `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"Maximum number of values of a page."`
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"Offset of the last received value; browsers send it automatically. It precedes from."`
}

// readStream answers with a page or a stream of values. It returns an error before the answer
// starts if the task does not exist.
func (h *Handler) readStream(ctx context.Context, in *readStreamInput) (*huma.StreamResponse, error) {
	if in.LastEventID != "" {
		last, err := strconv.ParseInt(in.LastEventID, 10, 64)
		if err != nil || last < 0 {
			return nil, route.NewInvalidError("header.Last-Event-ID", "send the offset of the last value, such as 12",
				"%.40q is not an offset in a stream", in.LastEventID)
		}
		in.From = last + 1
	}
	if _, err := h.Store.Task(ctx, in.Task); err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	r := &streamReader{store: h.Store, task: in.Task, name: in.Stream, next: in.From}
	if strings.Contains(route.ExchangeOf(ctx).Request.Header.Get("Accept"), "text/event-stream") {
		return h.followStream(r), nil
	}
	page, err := r.readPage(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		_, _ = c.BodyWriter().Write(EncodeLine(page)) // fails only if the client is gone
	}}, nil
}

// followStream sends the values of a stream until it ends.
func (h *Handler) followStream(r *streamReader) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := route.ExchangeOf(c.Context())
		st := &EventFeed{Source: h.Feeds, Task: r.task}
		_, err := stream.ServeSSE(x.Writer, x.Request, h.Heartbeat,
			func(ctx context.Context, to stream.Listener) error { return st.streamValues(ctx, to, r) })
		if err != nil {
			h.Logger.Error("stream interrupted", "error", err, "task", r.task, "stream", r.name, "request", api.RequestID(c.Context()))
		}
	}}
}

// streamValues sends values until the stream or the task has ended or the task was deleted.
func (st *EventFeed) streamValues(ctx context.Context, to stream.Listener, r *streamReader) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := st.noteTroubleUnlessDeleted(ctx, to)
	err := api.FollowParts(ctx, r.readNext, r.isOver, troubled, func(values []wire.StreamValue) error {
		st.inTrouble = false
		batch := stream.Batch{To: to}
		for i := range values {
			if err := batch.Add(stream.Message{ID: strconv.FormatInt(values[i].Offset, 10), Data: EncodeLine(&values[i])}); err != nil {
				return err
			}
		}
		return batch.Send()
	})
	if api.Missing(err) {
		return nil // the task was deleted
	}
	if err != nil {
		return err
	}
	end := wire.EndOfStream{Task: r.task, Stream: r.name, Next: r.next, State: r.state}
	return to.Send([]stream.Message{{Event: "end", Data: EncodeLine(&end)}})
}

// streamReader reads a stream in parts.
type streamReader struct {
	store      api.Store
	task, name string
	next       int64  // offset of the next value
	state      string // state of the task when the stream ended
}

// streamRows is the number of rows in one read. A row has at most 1 MiB.
const streamRows = 8

// readNext returns the next values and advances.
func (r *streamReader) readNext(ctx context.Context) (values []wire.StreamValue, more bool, err error) {
	rows, err := r.store.ReadStream(ctx, persistence.StreamFilter{Task: r.task, Name: r.name, From: r.next, Limit: streamRows})
	if err != nil {
		return nil, false, err
	}
	for i := range rows {
		list, err := valuesOf(&rows[i], r.next)
		if err != nil {
			return nil, false, err
		}
		values = append(values, list...)
		r.next = rows[i].Last + 1
	}
	return values, len(rows) == streamRows, nil
}

// isOver reports whether the stream or the task has ended, so that no value follows.
func (r *streamReader) isOver(ctx context.Context) (bool, error) {
	task, err := r.store.Task(ctx, r.task)
	if err != nil {
		return false, err
	}
	r.state = string(task.Status)
	if flow.TaskStatus(task.Status).Ended() {
		return true, nil
	}
	sizes, err := r.store.StreamSizes(ctx, r.task)
	at := slices.IndexFunc(sizes, func(s persistence.StreamSize) bool { return s.Name == r.name })
	return err == nil && at >= 0 && sizes[at].Ended, err
}

// readPage returns a page. It first reads whether the stream has ended, so that no value is missed.
func (r *streamReader) readPage(ctx context.Context, limit int) (*wire.StreamPage, error) {
	over, err := r.isOver(ctx)
	if err != nil {
		return nil, catalog.LocateTaskError(r.task, err)
	}
	page := &wire.StreamPage{Values: []wire.StreamValue{}, Next: r.next}
	for size := 0; ; {
		values, more, err := r.readNext(ctx)
		if err != nil {
			return nil, err
		}
		for i := range values {
			if len(page.Values) == limit || size > pageBytes {
				return page, nil
			}
			size += len(values[i].Value)
			page.Values, page.Next = append(page.Values, values[i]), values[i].Offset+1
		}
		if !more {
			page.Ended = over
			return page, nil
		}
	}
}

// valuesOf returns the values of a row from an offset.
func valuesOf(r *persistence.StreamRow, from int64) (values []wire.StreamValue, err error) {
	list, err := r.Values()
	if err != nil {
		return nil, err
	}
	_, at, err := flow.ParseJobID(r.Job)
	if err != nil {
		return nil, err
	}
	for i, v := range list {
		if r.First+int64(i) < from {
			continue
		}
		value := wire.StreamValue{Offset: r.First + int64(i), Value: json.RawMessage(v), At: wire.Millis(r.At), Step: r.Step,
			Unit: at.Unit, Attempt: at.Attempt, Try: r.Try, Writer: r.Source}
		if at.Visit > 1 {
			value.Visit = at.Visit
		}
		values = append(values, value)
	}
	return values, nil
}
