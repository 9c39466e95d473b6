package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/payload"
)

// sseWriteTimeout is how long a client may take to read written data.
const sseWriteTimeout = 30 * time.Second

// ServeSSE answers a request with server-sent events: the messages of tell, and heartbeats in
// silent times. The stream ends when tell returns, the client is gone, or the server stops. If
// opened is false, the caller can still answer with err; otherwise err can only be logged.
func ServeSSE(w http.ResponseWriter, r *http.Request, alive time.Duration,
	tell func(context.Context, Listener) error) (opened bool, err error) {
	ctx, leave := Stay(w, r)
	s := &sseWriter{w: w, rc: http.NewResponseController(w), payloads: payload.Of(w)}
	var beating sync.WaitGroup
	defer beating.Wait() // no goroutine may write to an ended answer, even after a panic
	defer leave()
	beating.Go(func() { s.sendHeartbeats(ctx, alive, leave) })
	err = tell(ctx, s)
	if s.opened && (ctx.Err() != nil || errors.Is(err, ErrGone) || errors.Is(err, ErrBrokenOff)) {
		err = nil // the client reconnects if it needs more
	}
	return s.opened, err
}

// sseWriter writes server-sent events.
type sseWriter struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	rc     *http.ResponseController
	opened bool

	payloads *payload.Store
}

func (s *sseWriter) Open() error { return s.writeText(nil) }

func (s *sseWriter) Note(text string) error { return s.writeText([]byte(": " + text + "\n\n")) }

func (s *sseWriter) Send(list []Message) error {
	if len(list) == 0 {
		return nil
	}
	var text []byte
	for _, m := range list {
		for _, field := range [][2]string{{"id", m.ID}, {"event", m.Event}} {
			if field[1] != "" {
				text = fmt.Appendf(text, "%s: %s\n", field[0], field[1])
			}
		}
		data, err := s.payloads.Whole(m.Data)
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "data: %s\n\n", data)
	}
	return s.writeText(text)
}

// sendHeartbeats sends heartbeats in silent times until ctx ends. It calls leave if the client is
// gone.
func (s *sseWriter) sendHeartbeats(ctx context.Context, every time.Duration, leave func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.isOpen() && s.Note("alive") != nil {
				leave()
				return
			}
		}
	}
}

func (s *sseWriter) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *sseWriter) writeText(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		s.opened = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // a buffering proxy would delay events
		s.w.WriteHeader(http.StatusOK)
		text = append([]byte("retry: 1000\n\n"), text...)
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(sseWriteTimeout)) // needs no deadline then
	if len(text) == 0 {
		return nil
	}
	if _, err := s.w.Write(text); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := s.rc.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}
