package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// events streams what happens to a run: first a snapshot, then every event after it. Whoever names the last
// event they have seen gets those behind it instead; whoever comes before the run has started, with the
// id it will have, gets all.
func (p *pgflow) events(w http.ResponseWriter, r *http.Request) error {
	run := r.PathValue("run")
	ctx, leave := Stay(w, r)
	defer leave()
	s := &pgStream{p: p, sse: newSSE(w), run: run}
	_, err := p.store.Task(ctx, run)
	switch {
	case missing(err) && uuid.Validate(run) == nil:
		if s.open() != nil || s.appears(ctx) != nil {
			return nil
		}
		s.feed.s, err = p.newState(ctx, run)
	case err != nil:
		return noRun(run, err)
	default:
		err = s.begin(ctx, r.Header.Get("Last-Event-ID"))
	}
	if err == nil {
		err = s.follow(ctx)
	}
	switch {
	case s.opened && err != nil && ctx.Err() == nil:
		noteError(r, err)
	case !s.opened && err == nil:
		w.WriteHeader(http.StatusNoContent) // there will be nothing more: browsers do not come again
	case !s.opened:
		return noRun(run, err)
	}
	return nil
}

// pgStream is one stream of a run's events.
type pgStream struct {
	*sse
	p     *pgflow
	run   string
	feed  pgFeed
	read  int64 // rows up to here are part of the feed's state
	after pgSpot
}

// appears waits for the run to be started.
func (s *pgStream) appears(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.p.engine.Appears(ctx, s.run) }()
	alive := time.NewTicker(sseHeartbeat)
	defer alive.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-alive.C:
			if err := s.write(": not started yet\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newState is a run before its first event.
func (p *pgflow) newState(ctx context.Context, run string) (*flow.State, error) {
	row, err := p.store.Task(ctx, run)
	if err != nil {
		return nil, err
	}
	plan, err := p.reader.Plan(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	return flow.NewState(run, plan), nil
}

// begin sends a snapshot, or finds the place behind the last event that was seen. That of a run that has
// ended is not opened before there is something to tell.
func (s *pgStream) begin(ctx context.Context, last string) (err error) {
	v, err := s.p.reader.View(ctx, s.run)
	if err != nil {
		return err
	}
	if last == "" {
		s.feed.s, s.read, s.after = v.State, v.Seq, pgSpot{v.Seq, wholeRow}
		return s.send([]sseMessage{{id: s.after.String(), event: "snapshot", data: statesOf(v.State)}})
	}
	if s.after, err = parsePgSpot(last); err != nil {
		return err
	}
	s.feed.s = flow.NewState(s.run, v.State.Plan)
	if v.State.Status.Ended() {
		return nil
	}
	return s.open()
}

// follow streams until the run has ended, the client is gone, or the server leaves.
func (s *pgStream) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	type read struct {
		row persistence.Row
		err error
	}
	rows := make(chan read)
	go func() {
		defer close(rows)
		for row, err := range s.p.engine.Watch(ctx, s.run, s.read) {
			select {
			case rows <- read{row, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		stop()
		for range rows { // wait until the reader has ended
		}
	}()
	alive := time.NewTicker(sseHeartbeat)
	defer alive.Stop()
	for {
		select {
		case r, more := <-rows:
			if !more || r.err != nil {
				return r.err
			}
			list, err := s.feed.told(r.row, s.after)
			if err != nil {
				return err
			}
			if s.send(list) != nil {
				return nil // the client is gone
			}
		case <-alive.C:
			if s.opened && s.write(": alive\n\n") != nil {
				return nil
			}
		}
	}
}
