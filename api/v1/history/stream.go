package history

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

type streamInput struct {
	catalog.TaskPath
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"ID of the last received event; browsers send it automatically."`
	After       string `query:"after" maxLength:"40" doc:"Alternative to Last-Event-ID, for the first connection."`
}

// streamTask answers with a stream of events. It returns an error before the stream starts if the
// task does not exist.
func (h *Handler) streamTask(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
	where, text := "query.after", in.After
	if in.LastEventID != "" {
		where, text = "header.Last-Event-ID", in.LastEventID
	}
	from, err := ParsePosition(where, text)
	if err != nil {
		return nil, err
	}
	if _, err := h.Store.Task(ctx, in.Task); err != nil {
		return nil, catalog.LocateTaskError(in.Task, err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := route.ExchangeOf(c.Context())
		st := &EventFeed{Source: h.Feeds, Task: in.Task, From: from}
		_, err := stream.ServeSSE(x.Writer, x.Request, h.Heartbeat, st.StreamEvents)
		if err != nil {
			h.Logger.Error("stream interrupted", "error", err, "task", in.Task, "request", api.RequestID(c.Context()))
		}
	}}, nil
}

// FeedSource holds the dependencies of a task's feeds.
type FeedSource struct {
	Store  api.Store
	Reader api.Reader
	Engine engine.Engine
	Logger *slog.Logger
}

// EventFeed sends the events and the end of a task.
type EventFeed struct {
	Source *FeedSource
	Task   string
	From   stream.Position

	inTrouble bool // the store does not answer
}

// StreamEvents sends events until the task has ended. It continues while the store is unavailable,
// because browsers do not reconnect after an error response.
func (st *EventFeed) StreamEvents(ctx context.Context, to stream.Listener) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := func(err error) error { return st.noteTrouble(ctx, to, err) }
	err := stream.Follow(ctx, st.Source.Engine, st.Task, st.From.Since(), troubled, func(row engine.Row) error {
		st.inTrouble = false
		events, err := eventsOf(row, st.From)
		if err != nil {
			return err
		}
		batch := stream.Batch{To: to}
		for i := range events {
			if err := batch.Add(stream.Message{ID: events[i].ID, Data: EncodeLine(&events[i])}); err != nil {
				return err
			}
		}
		return batch.Send()
	})
	if err == nil {
		err = st.sendEnd(ctx, to, troubled)
	}
	if api.Missing(err) {
		return nil // the task was deleted
	}
	return err
}

// noteTrouble notifies the client that the store does not answer. It logs this once.
func (st *EventFeed) noteTrouble(ctx context.Context, to stream.Listener, err error) error {
	if !st.inTrouble {
		st.inTrouble = true
		st.Source.Logger.Warn("stream is waiting for the store", "error", err, "task", st.Task, "request", api.RequestID(ctx))
	}
	return to.Note(stream.Trouble)
}

// noteTroubleUnlessDeleted returns a function like noteTrouble, which returns an error if the task
// was deleted or the client is gone.
func (st *EventFeed) noteTroubleUnlessDeleted(ctx context.Context, to stream.Listener) func(error) error {
	return func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if api.Missing(err) {
			return err
		}
		return st.noteTrouble(ctx, to, err)
	}
}

// sendEnd sends the final state of the task if the task has ended.
func (st *EventFeed) sendEnd(ctx context.Context, to stream.Listener, troubled func(error) error) error {
	view, err := st.Source.Reader.View(ctx, st.Task)
	for err != nil && !api.Missing(err) {
		if err := stream.Outlast(ctx, err, troubled); err != nil {
			return err
		}
		view, err = st.Source.Reader.View(ctx, st.Task)
	}
	if err != nil {
		return err
	}
	if !view.State.Status.Ended() {
		return stream.ErrBrokenOff
	}
	end := wire.TaskEnd{Task: st.Task, State: string(view.State.Status), Error: view.State.Error, IgnoredErrors: view.State.Followed}
	if view.State.Status == flow.TaskCompleted {
		end.Result = view.State.Result()
	}
	return to.Send([]stream.Message{{Event: "end", Data: EncodeLine(&end)}})
}

// EncodeLine returns a value as JSON on one line.
func EncodeLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // every value passed here can be encoded
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
