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

// logWatch follows what a pod prints, from its first line to its last. Kubernetes does not tell
// standard error from standard output.
type logWatch struct {
	end     context.CancelFunc
	touched time.Time     // when somebody asked for it; the service's lock is held
	done    chan struct{} // closed when all is read

	// When done is closed:
	listener *program.Listener
	log      *logs.Writer
	err      error // why it could not be read

	hearing sync.Mutex
	result  *flow.ExternalStatus // what it has come to; nil = nobody has asked yet
}

// watchIdleTime is how long a pod is followed that nobody asks for: another member has its task, or
// nobody.
const watchIdleTime = 2 * time.Minute

// sourceOf numbers the lines of logs. They are numbered alike whoever reads them, from the first
// one on, so each line is stored once.
const sourceOf = "kubernetes"

// followLog follows a pod, or goes on doing so. What has ended is not followed, but read.
func (s *Service) followLog(c *kubeClient, x flow.External, n *jobNote, pod string, ended bool) *logWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[x.ID]; w != nil && !(w.isDone() && w.err != nil) {
		w.touched = time.Now()
		return w
	}
	ctx, end := context.WithCancel(s.ctx)
	w := &logWatch{end: end, touched: time.Now(), done: make(chan struct{})}
	w.listener, w.log = program.Listen(s.opts.Tools.MaxOutput, &flow.Program{}), s.opts.Tools.Logs.Resume(x.Task, x.Job, sourceOf)
	s.watches[x.ID] = w
	s.work.Go(func() {
		defer close(w.done)
		w.err = w.readLog(ctx, c, n.Namespace, pod, !ended)
	})
	return w
}

// isDone says that all is read, or could not be.
func (w *logWatch) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *logWatch) readLog(ctx context.Context, c *kubeClient, namespace, pod string, follow bool) error {
	printed, err := c.openLog(ctx, namespace, pod, taskContainer, follow)
	if err != nil {
		return err
	}
	defer printed.Close()
	_, err = io.Copy(io.MultiWriter(w.listener.Stdout(), w.listener.Stderr(), w.log.Stream(lines.Stdout)), printed)
	return err
}

// stopWatch ends the following of a job.
func (s *Service) stopWatch(name string) {
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
		if time.Since(w.touched) > watchIdleTime {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.stopWatch(name)
	}
}
