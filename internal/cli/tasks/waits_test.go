package tasks

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

func TestWaitingReportsWhyTheMemberIsNotReady(t *testing.T) {
	var why atomic.Value
	why.Store("the store is not available, because its disk is full")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if text := why.Load().(string); text != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"` + text + `"}`))
			return
		}
		_, _ = w.Write([]byte(`{"status":"ready"}`))
	}))
	t.Cleanup(s.Close)
	server, err := client.New(s.URL, client.Options{})
	require.NoError(t, err)
	var out, errs bytes.Buffer
	w := NewWatch(&console.App{Stdout: &out, Stderr: &errs}, server, "task", true)
	w.idleSince = time.Now()
	w.askMember(t.Context())
	require.Empty(t, errs.String(), "something has just happened")
	ask := func() {
		w.idleSince, w.nextHealthCheck = time.Now().Add(-time.Minute), time.Time{}
		w.askMember(t.Context())
	}
	ask()
	ask()
	require.Equal(t, 1, strings.Count(errs.String(),
		"waiting for the member: the store is not available, because its disk is full"), errs.String())
	why.Store("")
	ask()
	require.Contains(t, errs.String(), "the member is ready again")
	require.Empty(t, out.String())
}
