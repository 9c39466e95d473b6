package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// unready is an engine that cannot do its work.
type unready struct{ engine.Engine }

func (unready) Ready() error {
	return flow.Errorf(flow.Busy, "the member cannot write to its store")
}

func TestReadyzSaysWhyAMemberIsNotReady(t *testing.T) {
	s := serve(t, api.Config{}, func(s *api.Server) {
		api.Instead(s, func(e engine.Engine) engine.Engine { return unready{e} })
	})
	resp, body := s.do(t, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Contains(t, body, "the member cannot write to its store")
}
