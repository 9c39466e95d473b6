package v1

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

const digestChannel = "digest:"

// digestPace is how far apart messages of a digest are, however much happens.
const digestPace = 200 * time.Millisecond

// digestFeed tells a digest and then what changes. It holds the task's state.
type digestFeed struct {
	streamer
	scopes []string
	after  int64 // what the listener knows

	mu    sync.Mutex
	d     digester
	moved chan struct{} // something has happened that has not been told
}

func newDigestFeed(st streamer, scopes []string) *digestFeed {
	return &digestFeed{streamer: st, scopes: scopes, after: st.from.Since(), moved: make(chan struct{}, 1)}
}

// tell ends when the task has ended.
func (f *digestFeed) tell(ctx context.Context, to stream.Listener) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := func(err error) error { return f.troubled(ctx, to, err) }
	if err := f.begin(ctx, to, troubled); err != nil {
		if api.Missing(err) {
			return nil // it was deleted meanwhile
		}
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { // ends with stop, and is waited for
		defer func() {
			if p := recover(); p != nil {
				ended <- fmt.Errorf("following the task panicked: %v\n%s", p, debug.Stack())
			}
		}()
		ended <- f.follow(following, troubled)
	}()
	err := f.tellOn(to, ended, stop)
	if err == nil {
		err = f.finish(to)
	}
	if api.Missing(err) {
		return nil
	}
	return err
}

// begin reads the task and tells all of it, unless the listener knows it.
func (f *digestFeed) begin(ctx context.Context, to stream.Listener, troubled func(error) error) error {
	view, err := f.s.Reader.View(ctx, f.task)
	for err != nil && !api.Missing(err) {
		if err := stream.Outlast(ctx, err, troubled); err != nil {
			return err
		}
		view, err = f.s.Reader.View(ctx, f.task)
	}
	if err != nil {
		return err
	}
	f.d = digester{view: view, asked: f.scopes}
	for _, path := range f.d.paths() {
		at, err := f.s.Reader.Sight(ctx, view, path)
		switch {
		case flow.ErrorKindOf(err) == flow.NotFound: // it may begin yet
		case err != nil:
			return err
		default:
			f.d.see(path, at)
		}
	}
	whole := f.d.whole()
	if f.after == view.Seq {
		return nil
	}
	return f.send(to, wire.StreamDigest, whole.Seq, &whole)
}

func (f *digestFeed) send(to stream.Listener, event string, seq int64, data any) error {
	return to.Send([]stream.Message{{ID: strconv.FormatInt(seq, 10), Event: event, Data: line(data)}})
}

// follow makes what happens part of the state.
func (f *digestFeed) follow(ctx context.Context, troubled func(error) error) error {
	return stream.Follow(ctx, f.s.Engine, f.task, f.d.view.Seq, troubled, func(row engine.Row) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inTrouble = false
		if err := flow.Fold(f.d.view.State, row.Events); err != nil {
			return err
		}
		f.d.view.Seq = row.Seq
		select {
		case f.moved <- struct{}{}:
		default:
		}
		return nil
	})
}

// tellOn tells what has changed, at a measured pace, until nothing more comes.
func (f *digestFeed) tellOn(to stream.Listener, ended <-chan error, stop context.CancelFunc) error {
	pace := time.NewTicker(digestPace)
	defer pace.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = f.tellChanges(to)
			}
			return err
		case <-f.moved:
		}
		if err := f.tellChanges(to); err != nil {
			stop()
			<-ended
			return err
		}
		<-pace.C
	}
}

// tellChanges tells what has changed, or everything when there is a scope that the listener does not know.
func (f *digestFeed) tellChanges(to stream.Listener) error {
	f.mu.Lock()
	if f.d.lookAround() {
		whole := f.d.whole()
		f.mu.Unlock()
		return f.send(to, wire.StreamDigest, whole.Seq, &whole)
	}
	changes := f.d.changes()
	f.mu.Unlock()
	return f.send(to, wire.StreamChanges, changes.Seq, &changes)
}

// finish tells how the task ended, without its result.
func (f *digestFeed) finish(to stream.Listener) error {
	state := f.d.view.State // nobody follows any more
	if !state.Status.Ended() {
		return stream.ErrBrokenOff
	}
	return to.Send([]stream.Message{{Event: wire.StreamEnd, Data: line(&wire.End{Task: f.task, State: string(state.Status), Error: state.Error, Followed: state.Followed})}})
}
