package api_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// unready is an engine that is not ready until well is true.
type unready struct {
	engine.Engine
	well *atomic.Bool
}

func (e unready) Ready() error {
	if e.well.Load() {
		return nil
	}
	return flow.Errorf(flow.Busy, "the member cannot write to its store")
}

func TestReadyzReportsTheReasonAndTheLogRepeatsItOnce(t *testing.T) {
	var well atomic.Bool
	var log lines
	s := serve(t, api.Config{Member: api.Member{Logger: slog.New(slog.NewTextHandler(&log, nil))}}, func(s *api.Server) {
		api.Instead(s, func(e engine.Engine) engine.Engine { return unready{e, &well} })
	})
	for range 3 {
		resp, body := s.do(t, http.MethodGet, "/readyz", "")
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Contains(t, body, "the member cannot write to its store")
	}
	well.Store(true)
	for range 3 {
		resp, _ := s.do(t, http.MethodGet, "/readyz", "")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.Equal(t, 1, strings.Count(log.text(), "the member cannot write to its store"))
	require.Equal(t, 1, strings.Count(log.text(), "member is ready again"))
}
