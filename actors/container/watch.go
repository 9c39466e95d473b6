package container

import (
	"context"
	"io"
	"sync"
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

// watched follows the container of external work, or goes on doing so.
func (s *Service) watched(x flow.External, n *note) (*watch, error) {
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
	w.heard, w.log = program.Listen(s.most(), !n.Marked && n.FromFile == ""), s.opts.Logs.Resume(x.Task, x.Job, sourceOf)
	s.watches[x.ID] = w
	s.work.Go(func() {
		defer close(w.done)
		w.err = s.follow(ctx, w)
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

// follow reads until the container has ended.
func (s *Service) follow(ctx context.Context, w *watch) error {
	printed, err := s.client.ContainerLogs(ctx, w.of.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if err != nil {
		return err
	}
	defer printed.Close()
	out, complaints := w.hide.Writer(w.log.Stream(lines.Stdout)), w.hide.Writer(io.MultiWriter(w.heard.Stderr(), w.log.Stream(lines.Stderr)))
	_, err = stdcopy.StdCopy(io.MultiWriter(w.heard.Stdout(), out), complaints, printed)
	_, _ = out.Close(), complaints.Close() // who only listens never fails
	return err
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
