package api

import (
	"context"
	"net/http"
	"time"
)

// healthz says that the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether this member can do its work: it holds its lease, writes to its store and reaches it.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Engine.Ready(); err != nil {
		s.notReady(w, r, Judge(err).Text(), err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.cfg.Store.Ping(ctx); err != nil {
		s.notReady(w, r, "the store does not answer", err)
		return
	}
	WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) notReady(w http.ResponseWriter, r *http.Request, why string, err error) {
	NoteError(r, err)
	WriteError(w, http.StatusServiceUnavailable, why)
}
