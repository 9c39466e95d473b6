package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

type streamInput struct {
	TaskPath
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"id of the last event that was received; browsers send it by themselves"`
	After       string `query:"after" maxLength:"40" doc:"the same, for the first connection"`
}

// streamTask returns an error before it starts the stream if there is no such task.
func (h *historyHandler) streamTask(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
	where, text := "query.after", in.After
	if in.LastEventID != "" {
		where, text = "header.Last-Event-ID", in.LastEventID
	}
	from, err := parsePosition(where, text)
	if err != nil {
		return nil, err
	}
	if _, err := h.store.Task(ctx, in.Task); err != nil {
		return nil, noTask(in.Task, err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := c.Context().Value(exchangeKey{}).(httpExchange)
		st := &eventFeed{source: h.feeds, task: in.Task, from: from}
		_, err := stream.ServeSSE(x.w, x.r, h.heartbeat, st.streamEvents)
		if err != nil {
			h.logger.Error("a stream broke off", "error", err, "task", in.Task, "request", api.RequestID(c.Context()))
		}
	}}, nil
}

// feedSource holds what the feeds of a task read.
type feedSource struct {
	store  api.Store
	reader api.Reader
	engine engine.Engine
	logger *slog.Logger
}

// eventFeed sends the events of a task, and its end.
type eventFeed struct {
	source *feedSource
	task   string
	from   stream.Position

	inTrouble bool // whether the store does not answer
}

// streamEvents sends events until the task has ended. It continues while the store is unavailable,
// because browsers do not reconnect to a server that answers with an error.
func (st *eventFeed) streamEvents(ctx context.Context, to stream.Listener) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := func(err error) error { return st.noteTrouble(ctx, to, err) }
	err := stream.Follow(ctx, st.source.engine, st.task, st.from.Since(), troubled, func(row engine.Row) error {
		st.inTrouble = false
		events, err := eventsOf(row, st.from)
		if err != nil {
			return err
		}
		batch := stream.Batch{To: to}
		for i := range events {
			if err := batch.Add(stream.Message{ID: events[i].ID, Data: jsonLine(&events[i])}); err != nil {
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

// noteTrouble informs the client once that the store does not answer.
func (st *eventFeed) noteTrouble(ctx context.Context, to stream.Listener, err error) error {
	if !st.inTrouble {
		st.inTrouble = true
		st.source.logger.Warn("a stream waits for the store", "error", err, "task", st.task, "request", api.RequestID(ctx))
	}
	return to.Note(stream.Trouble)
}

// sendEnd sends how the task ended, if that is why there are no more events.
func (st *eventFeed) sendEnd(ctx context.Context, to stream.Listener, troubled func(error) error) error {
	view, err := st.source.reader.View(ctx, st.task)
	for err != nil && !api.Missing(err) {
		if err := stream.Outlast(ctx, err, troubled); err != nil {
			return err
		}
		view, err = st.source.reader.View(ctx, st.task)
	}
	if err != nil {
		return err
	}
	if !view.State.Status.Ended() {
		return stream.ErrBrokenOff
	}
	end := wire.End{Task: st.task, State: string(view.State.Status), Error: view.State.Error, Followed: view.State.Followed}
	if view.State.Status == flow.TaskCompleted {
		end.Result = view.State.Result()
	}
	return to.Send([]stream.Message{{Event: "end", Data: jsonLine(&end)}})
}

// jsonLine returns a value as JSON on one line. Marshaled JSON has line breaks only inside texts,
// where they are escaped.
func jsonLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // a bug of ours: every value passed here can be encoded
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// refTo returns a reference to the schema of a type.
func refTo[T any](schemas huma.Registry) *huma.Schema {
	return schemas.Schema(reflect.TypeFor[T](), true, "")
}
