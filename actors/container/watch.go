package container

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/redact"
)

// watch follows what a container prints, from its first line to its last.
type watch struct {
	of      flow.External
	end     context.CancelFunc
	touched time.Time     // when somebody asked for it; the service's lock is held
	done    chan struct{} // closed when all is read
	bytes   atomic.Int64  // that were read

	// When done is closed:
	heard *program.Listener
	log   *logs.Writer
	hide  *redact.Redactor
	err   error // why it could not be read

	hearing sync.Mutex
	told    *flow.ExternalStatus // what it has come to; nil = nobody has asked yet
}

// unasked is how long a container is followed that nobody asks for: another member has its task, or nobody.
const unasked = 2 * time.Minute

// sourceOf numbers the lines of containers' logs. They are numbered alike whoever reads them, from the first one on, so each line is stored once.
const sourceOf = "container"

// watched follows the container of external work, or goes on doing so. What has ended is not followed, but read.
func (s *Service) watched(x flow.External, n *note, ended bool) (*watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[x.ID]; w != nil && !w.failed() {
		w.touched = time.Now()
		return w, nil
	}
	hide, err := s.hiding(x.ID, n)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(s.ctx)
	w := &watch{of: x, end: end, hide: hide, touched: time.Now(), done: make(chan struct{})}
	w.heard, w.log = program.Listen(s.most(), n.heardAs()), s.opts.Logs.Resume(x.Task, x.Job, sourceOf)
	s.watches[x.ID] = w
	s.work.Go(func() {
		defer close(w.done)
		w.err = s.read(ctx, w, !ended)
	})
	return w, nil
}

// failed says that the reading ended before its time.
func (w *watch) failed() bool {
	select {
	case <-w.done:
		return w.err != nil
	default:
		return false
	}
}

// read reads what the container has printed, or prints until it has ended.
func (s *Service) read(ctx context.Context, w *watch, follow bool) error {
	printed, err := s.client.ContainerLogs(ctx, w.of.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: follow})
	if err != nil {
		return err
	}
	defer printed.Close()
	out, complaints := w.hide.Writer(w.log.Stream(lines.Stdout)), w.hide.Writer(io.MultiWriter(w.heard.Stderr(), w.log.Stream(lines.Stderr)))
	_, err = stdcopy.StdCopy(io.MultiWriter(w.heard.Stdout(), out), complaints, io.TeeReader(printed, w))
	_, _ = out.Close(), complaints.Close() // who only listens never fails
	return err
}

// Write counts what is read.
func (w *watch) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return len(p), nil
}

// silence is how long nothing may come of a container that has ended until it is read anew.
const silence = 2 * time.Second

// complete waits until all is read that a container has printed which has ended, and says whether it is. Podman may miss the end of a container that it
// follows, and then goes on for ever: such a reading is ended, and the next look begins another one, which does not follow.
func (s *Service) complete(ctx context.Context, w *watch) bool {
	for {
		before := w.bytes.Load()
		select {
		case <-w.done:
			return true
		case <-ctx.Done():
			return false // there is much to read
		case <-time.After(silence):
		}
		if w.bytes.Load() == before {
			s.unwatch(w.of.ID)
			return false
		}
	}
}

// unwatch ends the following of a container.
func (s *Service) unwatch(name string) {
	s.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// forget ends the following of a container for good: what it is not to tell is forgotten, too.
func (s *Service) forget(name string) {
	s.unwatch(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hidden, name)
}

// forgetUnasked ends the following of containers that nobody asks for.
func (s *Service) forgetUnasked() {
	s.mu.Lock()
	var names []string
	for name, w := range s.watches {
		if time.Since(w.touched) > unasked {
			names = append(names, name)
		}
	}
	for name, known := range s.hidden { // of what another member looks after
		if s.watches[name] == nil && time.Since(known.since) > unasked {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.forget(name)
	}
}
