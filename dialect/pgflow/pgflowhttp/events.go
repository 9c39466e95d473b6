package pgflowhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// sseHeartbeat is the interval of heartbeats on a silent stream.
const sseHeartbeat = 15 * time.Second

// streamEvents sends the events of a run as server-sent events.
func (p *pgflow) streamEvents(w http.ResponseWriter, r *http.Request) error {
	run := runID(r)
	opened, err := stream.ServeSSE(w, r, sseHeartbeat, func(ctx context.Context, l stream.Listener) error {
		return p.runs.Tell(ctx, run, r.Header.Get("Last-Event-ID"), l)
	})
	switch {
	case opened && err != nil:
		api.NoteError(r, err)
	case !opened && err != nil:
		return err
	case !opened:
		// there are no more events, so browsers do not reconnect
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// Runs sends the events of runs in the words of pgflow's clients.
type Runs struct {
	Engine interface {
		stream.Watcher
		Appears(ctx context.Context, task string) error
	}
	Store interface {
		Task(ctx context.Context, id string) (*persistence.TaskRow, error)
	}
	Reader interface {
		View(ctx context.Context, task string) (*persistence.View, error)
		Plan(ctx context.Context, version string) (*flow.Plan, error)
	}
}

// Tell sends a run's events until the run has ended: first a snapshot, then every later event. If
// the caller sends the id of the last known event, Tell sends the events after that event instead.
// For the future id of a run that has not started, it sends all events. An error describes the
// fault of the request, before the stream is opened.
func (r Runs) Tell(ctx context.Context, run, last string, to stream.Listener) error {
	s := &pgStream{Runs: r, to: to, run: run}
	if err := s.awaitStart(ctx, last); err != nil {
		return noRun(run, err)
	}
	troubled := func(error) error { return to.Note(stream.Trouble) }
	err := stream.Follow(ctx, r.Engine, run, s.read, troubled, func(row engine.Row) error {
		return s.feed.sendRow(row, s.after, to)
	})
	if err == nil && !s.feed.s.Status.Ended() {
		return stream.ErrBrokenOff
	}
	return err
}

// pgStream is one stream of a run's events.
type pgStream struct {
	Runs
	to    stream.Listener
	run   string
	feed  pgFeed
	read  int64 // number of the last row that the feed's state includes
	after stream.Position
}

// awaitStart waits until a run has started.
func (s *pgStream) awaitStart(ctx context.Context, last string) error {
	_, err := s.Store.Task(ctx, s.run)
	if api.Missing(err) && uuid.Validate(s.run) == nil {
		if err := s.to.Open(); err != nil {
			return err
		}
		if err := s.Engine.Appears(ctx, s.run); err != nil {
			return err
		}
		s.feed.s, err = s.newState(ctx)
		return err
	}
	if err != nil {
		return err
	}
	return s.beginStream(ctx, last)
}

// newState returns the run before its first event.
func (s *pgStream) newState(ctx context.Context) (*flow.State, error) {
	row, err := s.Store.Task(ctx, s.run)
	if err != nil {
		return nil, err
	}
	plan, err := s.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	return flow.NewState(s.run, plan), nil
}

// beginStream sends a snapshot, or moves to the position after the last known event. If the run has
// ended, the stream is opened only with its first message.
func (s *pgStream) beginStream(ctx context.Context, last string) (err error) {
	known := false
	if s.after, known = stream.ParsePosition(last); !known {
		return flow.Errorf(flow.Invalid, "Last-Event-ID: %.40q is the id of no event", last)
	}
	v, err := s.Reader.View(ctx, s.run)
	if err != nil {
		return err
	}
	if last == "" {
		s.feed.s, s.read, s.after = v.State, v.Seq, stream.After(v.Seq)
		data, err := json.Marshal(statesOf(v.State))
		if err != nil {
			return err
		}
		return s.to.Send([]stream.Message{{ID: s.after.String(), Event: "snapshot", Data: data}})
	}
	s.feed.s = flow.NewState(s.run, v.State.Plan)
	if v.State.Status.Ended() {
		return nil
	}
	return s.to.Open()
}
