package history

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

// DigestChannel is the prefix of the digest channels of tasks.
const DigestChannel = "digest:"

// digestPace is the minimum time between two messages of a digest.
const digestPace = 200 * time.Millisecond

// DigestFeed sends a digest and then its changes. It keeps the task's state in memory.
type DigestFeed struct {
	EventFeed
	scopes []string
	after  int64 // number of the last row that the listener knows

	mu      sync.Mutex
	d       digestBuilder
	changed chan struct{} // signals an unsent change
}

// NewDigestFeed returns a feed of the digest of some scopes.
func NewDigestFeed(st EventFeed, scopes []string) *DigestFeed {
	return &DigestFeed{EventFeed: st, scopes: scopes, after: st.From.Since(), changed: make(chan struct{}, 1)}
}

// StreamDigest sends the digest until the task has ended.
func (f *DigestFeed) StreamDigest(ctx context.Context, to stream.Listener) error {
	if err := to.Open(); err != nil {
		return err
	}
	troubled := func(err error) error { return f.noteTrouble(ctx, to, err) }
	if err := f.sendInitial(ctx, to, troubled); err != nil {
		if api.Missing(err) {
			return nil // the task was deleted
		}
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { // ends with stop; the caller waits for it
		defer func() {
			if p := recover(); p != nil {
				ended <- fmt.Errorf("following the task panicked: %v\n%s", p, debug.Stack())
			}
		}()
		ended <- f.followEvents(following, troubled)
	}()
	err := f.streamChanges(to, ended, stop)
	if err == nil {
		err = f.sendEnd(to)
	}
	if api.Missing(err) {
		return nil
	}
	return err
}

// sendInitial reads the task and sends the complete digest, unless the listener knows it.
func (f *DigestFeed) sendInitial(ctx context.Context, to stream.Listener, troubled func(error) error) error {
	view, err := f.Source.Reader.View(ctx, f.Task)
	for err != nil && !api.Missing(err) {
		if err := stream.Outlast(ctx, err, troubled); err != nil {
			return err
		}
		view, err = f.Source.Reader.View(ctx, f.Task)
	}
	if err != nil {
		return err
	}
	f.d = digestBuilder{view: view, scopeFilter: f.scopes}
	for _, path := range f.d.scopePaths() {
		at, err := f.Source.Reader.Sight(ctx, view, path)
		switch {
		case flow.ErrorKindOf(err) == flow.NotFound: // the task may start later
		case err != nil:
			return err
		default:
			f.d.addScope(path, at)
		}
	}
	whole := f.d.buildDigest()
	if f.after == view.Seq {
		return nil
	}
	return f.sendEvent(to, wire.StreamDigest, whole.Seq, &whole)
}

func (f *DigestFeed) sendEvent(to stream.Listener, event string, seq int64, data any) error {
	return to.Send([]stream.Message{{ID: strconv.FormatInt(seq, 10), Event: event, Data: EncodeLine(data)}})
}

// followEvents applies new events to the state.
func (f *DigestFeed) followEvents(ctx context.Context, troubled func(error) error) error {
	return stream.Follow(ctx, f.Source.Engine, f.Task, f.d.view.Seq, troubled, func(row engine.Row) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inTrouble = false
		if err := flow.Fold(f.d.view.State, row.Events); err != nil {
			return err
		}
		f.d.view.Seq = row.Seq
		select {
		case f.changed <- struct{}{}:
		default:
		}
		return nil
	})
}

// streamChanges sends changes, at most one message per digestPace, until the task's events end.
func (f *DigestFeed) streamChanges(to stream.Listener, ended <-chan error, stop context.CancelFunc) error {
	pace := time.NewTicker(digestPace)
	defer pace.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = f.sendChanges(to)
			}
			return err
		case <-f.changed:
		}
		if err := f.sendChanges(to); err != nil {
			stop()
			<-ended
			return err
		}
		<-pace.C
	}
}

// sendChanges sends the changes, or the complete digest if a new scope has begun.
func (f *DigestFeed) sendChanges(to stream.Listener) error {
	f.mu.Lock()
	if f.d.addBegunScopes() {
		whole := f.d.buildDigest()
		f.mu.Unlock()
		return f.sendEvent(to, wire.StreamDigest, whole.Seq, &whole)
	}
	changes := f.d.buildChanges()
	f.mu.Unlock()
	return f.sendEvent(to, wire.StreamChanges, changes.Seq, &changes)
}

// sendEnd sends the final state of the task, without its result.
func (f *DigestFeed) sendEnd(to stream.Listener) error {
	state := f.d.view.State // nothing changes the state anymore
	if !state.Status.Ended() {
		return stream.ErrBrokenOff
	}
	return to.Send([]stream.Message{{Event: wire.StreamEnd,
		Data: EncodeLine(&wire.TaskEnd{Task: f.Task, State: string(state.Status), Error: state.Error,
			IgnoredErrors: state.Followed})}})
}
