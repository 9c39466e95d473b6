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

// containerWatch follows what a container prints, from its first line to its last.
type containerWatch struct {
	external flow.External
	cancel   context.CancelFunc
	touched  time.Time     // when somebody asked for it; the service's lock is held
	done     chan struct{} // closed when all is read
	bytes    atomic.Int64  // that were read

	// When done is closed:
	listener *program.Listener
	log      *logs.Writer
	hide     *redact.Redactor
	err      error // why it could not be read

	resultMu  sync.Mutex
	endStatus *flow.ExternalStatus // what it has come to; nil = nobody has asked yet
}

// unaskedTimeout is how long a container is followed that nobody asks for: another member has its
// task, or nobody.
const unaskedTimeout = 2 * time.Minute

// sourceOf numbers the lines of containers' logs. They are numbered alike whoever reads them, from
// the first one on, so each line is stored once.
const sourceOf = "container"

// ensureWatch follows the container of external work, or goes on doing so. What has ended is not
// followed, but read.
func (s *Service) ensureWatch(x flow.External, n *trackerNote, ended bool) (*containerWatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[x.ID]; w != nil && !w.hasFailed() {
		w.touched = time.Now()
		return w, nil
	}
	hide, err := s.redactorFor(x.ID, n)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(s.ctx)
	w := &containerWatch{external: x, cancel: end, hide: hide, touched: time.Now(), done: make(chan struct{})}
	w.listener, w.log = program.Listen(s.maxOutput(), n.heardAs()), s.opts.Logs.Resume(x.Task, x.Job, sourceOf)
	s.watches[x.ID] = w
	s.work.Go(func() {
		defer close(w.done)
		w.err = s.readLogs(ctx, w, !ended)
	})
	return w, nil
}

// hasFailed says that the reading ended before its time.
func (w *containerWatch) hasFailed() bool {
	select {
	case <-w.done:
		return w.err != nil
	default:
		return false
	}
}

// readLogs reads what the container has printed, or prints until it has ended.
func (s *Service) readLogs(ctx context.Context, w *containerWatch, follow bool) error {
	printed, err := s.client.ContainerLogs(ctx, w.external.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: follow})
	if err != nil {
		return err
	}
	defer printed.Close()
	out, complaints := w.hide.Writer(w.log.Stream(lines.Stdout)), w.hide.Writer(io.MultiWriter(w.listener.Stderr(), w.log.Stream(lines.Stderr)))
	_, err = stdcopy.StdCopy(io.MultiWriter(w.listener.Stdout(), out), complaints, io.TeeReader(printed, w))
	_, _ = out.Close(), complaints.Close() // who only listens never fails
	return err
}

// Write counts what is read.
func (w *containerWatch) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return len(p), nil
}

// readSilence is how long nothing may come of a container that has ended until it is read anew.
const readSilence = 2 * time.Second

// awaitComplete waits until all is read that a container has printed which has ended, and says
// whether it is. Podman may miss the end of a container that it follows, and then goes on for ever:
// such a reading is ended, and the next look begins another one, which does not follow.
func (s *Service) awaitComplete(ctx context.Context, w *containerWatch) bool {
	for {
		before := w.bytes.Load()
		select {
		case <-w.done:
			return true
		case <-ctx.Done():
			return false // there is much to read
		case <-time.After(readSilence):
		}
		if w.bytes.Load() == before {
			s.stopWatch(w.external.ID)
			return false
		}
	}
}

// stopWatch ends the following of a container.
func (s *Service) stopWatch(name string) {
	s.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.mu.Unlock()
	if w != nil {
		w.cancel()
	}
}

// forgetContainer ends the following of a container for good: what it is not to tell is forgotten,
// too.
func (s *Service) forgetContainer(name string) {
	s.stopWatch(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hidden, name)
}

// forgetUnasked ends the following of containers that nobody asks for.
func (s *Service) forgetUnasked() {
	s.mu.Lock()
	var names []string
	for name, w := range s.watches {
		if time.Since(w.touched) > unaskedTimeout {
			names = append(names, name)
		}
	}
	for name, known := range s.hidden { // of what another member looks after
		if s.watches[name] == nil && time.Since(known.since) > unaskedTimeout {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.forgetContainer(name)
	}
}
