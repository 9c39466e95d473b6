package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// sse writes a stream of server-sent events.
type sse struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	opened bool
}

type sseMessage struct {
	id, event string
	data      any
}

const (
	// sseWriteTimeout is how long a client may leave what was written unread.
	sseWriteTimeout = 30 * time.Second
	// sseHeartbeat is how often a silent stream shows that it is alive.
	sseHeartbeat = 15 * time.Second
)

func newSSE(w http.ResponseWriter) *sse { return &sse{w: w, rc: http.NewResponseController(w)} }

// open begins the answer, unless that has been done. An error means that nobody listens any more.
func (s *sse) open() error {
	if s.opened {
		return nil
	}
	s.opened = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that gather answers would keep events back
	s.w.WriteHeader(http.StatusOK)
	return s.write("retry: 1000\n\n")
}

func (s *sse) send(list []sseMessage) error {
	if len(list) == 0 {
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	var text []byte
	for _, m := range list {
		data, err := json.Marshal(m.data) // one line: line breaks are inside texts, where they are escaped
		if err != nil {
			return fmt.Errorf("encode event %s: %w", m.event, err)
		}
		text = fmt.Appendf(text, "id: %s\nevent: %s\ndata: %s\n\n", m.id, m.event, data)
	}
	return s.write(string(text))
}

func (s *sse) write(text string) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(sseWriteTimeout)) // a writer without deadlines does not block either
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}
