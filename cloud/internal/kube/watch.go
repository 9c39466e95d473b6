package kube

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
)

// watch follows what a pod prints, from its first line to its last. Kubernetes does not tell
// standard error from standard output.
type watch struct {
	end     context.CancelFunc
	touched time.Time     // when somebody asked for it; the service's lock is held
	done    chan struct{} // closed when all is read

	// When done is closed:
	heard *program.Listener
	log   *logs.Writer
	err   error // why it could not be read

	hearing sync.Mutex
	told    *flow.ExternalStatus // what it has come to; nil = nobody has asked yet
}

// unasked is how long a pod is followed that nobody asks for: another member has its task, or
// nobody.
const unasked = 2 * time.Minute

// sourceOf numbers the lines of logs. They are numbered alike whoever reads them, from the first
// one on, so each line is stored once.
const sourceOf = "kubernetes"

// watched follows a pod, or goes on doing so. What has ended is not followed, but read.
func (s *Service) watched(c *client, x flow.External, n *note, pod string, ended bool) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[x.ID]; w != nil && !(w.over() && w.err != nil) {
		w.touched = time.Now()
		return w
	}
	ctx, end := context.WithCancel(s.ctx)
	w := &watch{end: end, touched: time.Now(), done: make(chan struct{})}
	w.heard, w.log = program.Listen(s.opts.Tools.MaxOutput, &flow.Program{}), s.opts.Tools.Logs.Resume(x.Task, x.Job, sourceOf)
	s.watches[x.ID] = w
	s.work.Go(func() {
		defer close(w.done)
		w.err = w.read(ctx, c, n.Namespace, pod, !ended)
	})
	return w
}

// over says that all is read, or could not be.
func (w *watch) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *watch) read(ctx context.Context, c *client, namespace, pod string, follow bool) error {
	printed, err := c.log(ctx, namespace, pod, taskContainer, follow)
	if err != nil {
		return err
	}
	defer printed.Close()
	_, err = io.Copy(io.MultiWriter(w.heard.Stdout(), w.heard.Stderr(), w.log.Stream(lines.Stdout)), printed)
	return err
}

// unwatch ends the following of a job.
func (s *Service) unwatch(name string) {
	s.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// forgetUnasked ends the following of jobs that nobody asks for.
func (s *Service) forgetUnasked() {
	s.mu.Lock()
	var names []string
	for name, w := range s.watches {
		if time.Since(w.touched) > unasked {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.unwatch(name)
	}
}
