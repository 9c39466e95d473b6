package v1

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

type streamInput struct {
	TaskPath
	LastEventID string `header:"Last-Event-ID" maxLength:"40" doc:"id of the last event that was received; browsers send it by themselves"`
	After       string `query:"after" maxLength:"40" doc:"the same, for the first connection"`
}

// stream answers before it begins to stream when there is no such task.
func (s *service) stream(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
	where, text := "query.after", in.After
	if in.LastEventID != "" {
		where, text = "header.Last-Event-ID", in.LastEventID
	}
	from, err := parseSpot(where, text)
	if err != nil {
		return nil, err
	}
	if _, err := s.Store.Task(ctx, in.Task); err != nil {
		return nil, noTask(in.Task, err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		x := c.Context().Value(exchangeKey{}).(exchange)
		ctx, leave := stay(c.Context())
		defer leave()
		st := &streamer{s: s, task: in.Task, from: from, w: x.w, rc: http.NewResponseController(x.w)}
		if err := st.run(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("a stream broke off", "error", err, "task", in.Task, "request", api.RequestID(ctx))
		}
	}}, nil
}

// streamer writes one stream.
type streamer struct {
	s    *service
	task string
	from spot
	w    http.ResponseWriter
	rc   *http.ResponseController

	inTrouble bool // the store does not answer
}

// watched is what the journal's reader hands over.
type watched struct {
	row persistence.Row
	err error
}

// run streams until the task has ended, the client is gone, or the server leaves. A stream that stops
// without the message end is to be taken up again. It does not stop because the store does not answer for
// a while: browsers do not come back to a server that then answers them with an error.
func (st *streamer) run(ctx context.Context) error {
	if err := st.open(); err != nil {
		return nil // the client is gone before it got anything
	}
	ctx, stop := context.WithCancel(ctx)
	rows := make(chan watched)
	go st.read(ctx, rows)
	defer func() {
		stop()
		for range rows { // wait until the reader has ended
		}
	}()
	alive := time.NewTicker(st.s.Heartbeat)
	defer alive.Stop()
	for {
		select {
		case w, open := <-rows:
			if !open {
				st.finish(ctx)
				return nil
			}
			if isMissing(w.err) {
				return nil // it was deleted meanwhile
			}
			if w.err != nil {
				if st.troubled(ctx, w.err) != nil {
					return nil
				}
				continue
			}
			st.inTrouble = false
			if gone, err := st.send(w.row); gone || err != nil {
				return err
			}
		case <-alive.C:
			if st.write(": alive\n\n") != nil {
				return nil
			}
		}
	}
}

// read follows the journal and closes rows when there is nothing more to come. When the store does not
// answer it says so and goes on where it was.
func (st *streamer) read(ctx context.Context, rows chan<- watched) {
	defer close(rows)
	after := st.from.since()
	for failed := true; failed; {
		failed = false
		for row, err := range st.s.Engine.Watch(ctx, st.task, after) {
			select {
			case rows <- watched{row, err}:
			case <-ctx.Done():
				return
			}
			if failed = err != nil; !failed {
				after = row.Seq
			}
		}
		if failed && !pause(ctx) {
			return
		}
	}
}

// pause waits a little before the store is asked again. It is false when ctx ended first.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// troubled tells the client why it hears nothing. An error means that nobody listens any more.
func (st *streamer) troubled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // that is why
	}
	if !st.inTrouble {
		st.inTrouble = true
		st.s.Logger.Warn("a stream waits for the store", "error", err, "task", st.task, "request", api.RequestID(ctx))
	}
	return st.write(": the store does not answer: trying on\n\n")
}

func (st *streamer) open() error {
	h := st.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that gather answers would keep events back
	st.w.WriteHeader(http.StatusOK)
	return st.write("retry: 1000\n\n")
}

// send writes the events of a row. A client that cannot be written to is gone.
func (st *streamer) send(row persistence.Row) (gone bool, err error) {
	events, err := eventsOf(row, st.from)
	if err != nil || len(events) == 0 {
		return false, err
	}
	text := []byte{}
	for i := range events {
		text = fmt.Appendf(text, "id: %s\ndata: %s\n\n", events[i].ID, line(&events[i]))
	}
	return st.write(string(text)) != nil, nil
}

// finish writes how the task ended, if that is why there are no more events.
func (st *streamer) finish(ctx context.Context) {
	view, err := st.s.Reader.View(ctx, st.task)
	for err != nil && !isMissing(err) {
		if st.troubled(ctx, err) != nil || !pause(ctx) {
			return
		}
		view, err = st.s.Reader.View(ctx, st.task)
	}
	if err != nil || !view.State.Status.Ended() {
		return
	}
	end := wire.End{Task: st.task, State: string(view.State.Status), Error: view.State.Error}
	if view.State.Status == flow.TaskCompleted {
		end.Result = view.State.Result()
	}
	_ = st.write("event: end\ndata: " + string(line(&end)) + "\n\n") // a client that is gone asks again
}

// writeTimeout is how long a client may leave what was written unread.
const writeTimeout = 30 * time.Second

func (st *streamer) write(text string) error {
	_ = st.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines does not block either
	if _, err := st.w.Write([]byte(text)); err != nil {
		return err
	}
	return st.rc.Flush()
}

// line is a value on one line: what is marshaled holds no line break outside of texts, where they are escaped.
func line(v any) []byte {
	var b bytes.Buffer
	if err := jsonFormat.Marshal(&b, v); err != nil { // a bug of ours: every value we print is made to be printed
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// refTo refers to the description of a type.
func refTo[T any](schemas huma.Registry) *huma.Schema {
	return schemas.Schema(reflect.TypeFor[T](), true, "")
}
