package containers

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/lines"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/redact"
)

// containerWatch reads the output of a container from the first to the last line.
type containerWatch struct {
	external flow.External
	cancel   context.CancelFunc
	touched  time.Time     // last use; guarded by the service's lock
	done     chan struct{} // closed when the output is read completely
	bytes    atomic.Int64  // bytes read

	// Valid after done is closed:
	listener *program.Listener
	log      *logs.Writer
	hide     *redact.Redactor
	err      error // reason why the output could not be read

	resultMu  sync.Mutex
	endStatus *flow.ExternalStatus // result of the container; nil before the first request
}

// unaskedTimeout is how long a container is read without polls. Then another member polls it, or it
// is no longer needed.
const unaskedTimeout = 2 * time.Minute

// sourceOf is the source name of a container's log lines. All members number the lines from the
// first one, so each line is stored once.
const sourceOf = "container"

// ensureWatch starts or continues to read a container's output. It reads an ended container without
// following.
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

// hasFailed reports whether reading ended with an error.
func (w *containerWatch) hasFailed() bool {
	select {
	case <-w.done:
		return w.err != nil
	default:
		return false
	}
}

// readLogs reads the output of a container, up to now or until its end.
func (s *Service) readLogs(ctx context.Context, w *containerWatch, follow bool) error {
	printed, err := s.client.ContainerLogs(ctx, w.external.ID,
		client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: follow})
	if err != nil {
		return err
	}
	defer printed.Close()
	out, complaints := w.hide.Writer(w.log.Stream(lines.Stdout)),
		w.hide.Writer(io.MultiWriter(w.listener.Stderr(), w.log.Stream(lines.Stderr)))
	_, err = stdcopy.StdCopy(io.MultiWriter(w.listener.Stdout(), out), complaints, io.TeeReader(printed, w))
	_, _ = out.Close(), complaints.Close() // these writers never fail
	return err
}

// Write counts the bytes read.
func (w *containerWatch) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return len(p), nil
}

// readSilence is the time without output after which an ended container is read again.
const readSilence = 2 * time.Second

// awaitComplete waits until the output of an ended container is read completely, and reports
// whether it is. Podman may miss the end of a container that is being followed. Then the read is
// canceled, and the next poll starts a read that does not follow the container.
func (s *Service) awaitComplete(ctx context.Context, w *containerWatch) bool {
	for {
		before := w.bytes.Load()
		select {
		case <-w.done:
			return true
		case <-ctx.Done():
			return false // more output is still being read
		case <-time.After(readSilence):
		}
		if w.bytes.Load() == before {
			s.stopWatch(w.external.ID)
			return false
		}
	}
}

// stopWatch stops reading a container.
func (s *Service) stopWatch(name string) {
	s.mu.Lock()
	w := s.watches[name]
	delete(s.watches, name)
	s.mu.Unlock()
	if w != nil {
		w.cancel()
	}
}

// forgetContainer stops reading a container permanently, and drops its secrets.
func (s *Service) forgetContainer(name string) {
	s.stopWatch(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hidden, name)
}

// forgetUnasked stops reading containers that are not polled.
func (s *Service) forgetUnasked() {
	s.mu.Lock()
	var names []string
	for name, w := range s.watches {
		if time.Since(w.touched) > unaskedTimeout {
			names = append(names, name)
		}
	}
	for name, known := range s.hidden { // redactors of containers that another member polls
		if s.watches[name] == nil && time.Since(known.since) > unaskedTimeout {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		s.forgetContainer(name)
	}
}
