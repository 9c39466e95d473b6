package kube

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
)

// logWatch reads the log of a pod from its first line to its last. Kubernetes does not distinguish
// standard error from standard output.
type logWatch struct {
	end     context.CancelFunc
	touched time.Time     // time of the last request for it; guarded by the service's lock
	done    chan struct{} // closed when the log is read completely

	// Valid when done is closed:
	listener *program.Listener
	log      *logs.Writer
	err      error // reason why it could not be read

	hearing sync.Mutex
	result  *flow.ExternalStatus // result of the job; nil until it is requested
}

// watchIdleTime is how long a log is read without requests. After that another member has its task,
// or no attempt waits for it.
const watchIdleTime = 2 * time.Minute

// sourceOf is the source under which log lines are numbered. All readers number them equally from
// the first line on, so each line is stored once.
const sourceOf = "kubernetes"

// followLog starts to follow the log of a pod, or continues. The log of an ended pod is read
// completely.
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

// isDone reports whether the log was read completely, or could not be read.
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

// stopWatch stops following the log of a job.
func (s *Service) stopWatch(name string) {
	s.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// forgetUnasked stops following logs without recent requests.
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
