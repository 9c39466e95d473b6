package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// lastReadiness holds the result of the last readiness probe.
type lastReadiness struct {
	mu     sync.Mutex
	reason string // "" if the member was ready, or before the first probe
}

// hasChanged stores a reason and reports whether the reason differs from the last one.
func (r *lastReadiness) hasChanged(why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.reason
	r.reason = why
	return why != before
}

// handleHealthz reports that the process answers.
func (s *Server) handleHealthz(w http.ResponseWriter, _ *http.Request) {
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// handleReadyz reports whether this member can work: it holds its lease, and its store is reachable
// and writable.
func (s *Server) handleReadyz(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Engine.Ready(); err != nil {
		s.notReady(w, Judge(err).Text(), err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.cfg.Store.Ping(ctx); err != nil {
		why := "the store does not answer"
		if reason := persistence.ReasonOf(err); reason != "" {
			why = "the store is not available, because " + reason
		}
		s.notReady(w, why, err)
		return
	}
	if s.ready.hasChanged("") {
		s.log.Info("member is ready again")
	}
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// notReady answers a probe with 503. It logs each change of the reason once, because probes are
// frequent. An unavailable store is an error; other reasons are warnings.
func (s *Server) notReady(w http.ResponseWriter, why string, err error) {
	if s.ready.hasChanged(why) {
		level := slog.LevelError
		if flow.ErrorKindOf(err) == flow.Busy && persistence.ReasonOf(err) == "" {
			level = slog.LevelWarn
		}
		s.log.Log(context.Background(), level, "member is not ready", "error", err)
	}
	WriteError(w, http.StatusServiceUnavailable, why)
}
