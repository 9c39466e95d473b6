package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/certtest"
)

func TestHealthAsksAMember(t *testing.T) {
	url := startServe(t, "--token", "secret")
	require.Equal(t, result{0, "ready\n", ""}, call(t, "health", "--server", url), "probes need no token")
	require.Equal(t, result{0, "alive\n", ""}, call(t, "health", "--live", "--server", url))
	got := call(t, "health", "--server", "http://127.0.0.1:1")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "no server answers at http://127.0.0.1:1")
}

func TestHealthReportsWhyAMemberIsNotReady(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"the store does not answer"}`))
		}
	}))
	t.Cleanup(s.Close)
	got := call(t, "health", "--server", s.URL)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "the store does not answer")
}

func TestHealthNeedsNoClientCertificate(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	url := startServe(t, "--tls-cert", own.Cert, "--tls-key", own.Key, "--tls-client-ca", ca.File)
	require.Equal(t, 0, call(t, "health", "--server", url, "--ca", ca.File).code)
}
