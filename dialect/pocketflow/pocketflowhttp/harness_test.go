package pocketflowhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// serving is a member that serves only this dialect.
type serving struct {
	url    string
	store  persistence.Store
	member *actors.Member
}

func serve(t *testing.T) *serving {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	registry, err := workers.Open(t.Context(), store, workers.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close(context.Background())) })
	member, err := actors.Start(t.Context(), actors.Config{Store: store, Lease: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, member.Stop(context.Background())) })
	from := api.Member{Engine: member, Store: store, Reader: persistence.NewReader(store, flow.Limits{}), Registry: registry}
	shell, err := api.New(api.Config{Member: from, Families: []api.Family{New(from)}})
	require.NoError(t, err)
	web := httptest.NewServer(shell.Handler())
	t.Cleanup(web.Close)
	return &serving{web.URL, store, member}
}

func (s *serving) do(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}
