package cli

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/certtest"
)

func TestCommandsAndWorkersUseAMemberOverTLS(t *testing.T) {
	ca, clients := certtest.New(t), certtest.New(t)
	own, mine := ca.Issue(t), clients.Issue(t)
	url := startServe(t, "--tls-cert", own.Cert, "--tls-key", own.Key, "--tls-client-ca", clients.File)
	require.True(t, strings.HasPrefix(url, "https://"), url)
	trust := []string{"--server", url, "--ca", ca.File, "--client-cert", mine.Cert, "--client-key", mine.Key}

	path := write(t, "shell.yaml", "nodes:\n  x: {service: async-transform, route: queue, params: {text: x}}\n")
	got := call(t, append([]string{"flow", "apply", path}, trust...)...)
	require.Equal(t, 0, got.code, got.stderr)
	_, _ = background(t, append([]string{"worker", "--log-level", "error"}, trust...)...)
	got = call(t, append([]string{"task", "start", "shell", "--wait"}, trust...)...)
	require.Equal(t, 0, got.code, got.stdout+got.stderr)

	got = call(t, append([]string{"flow", "apply",
		write(t, "far.yaml", "nodes:\n  x: {service: echo, exec_type: remote, retry: "+
			"{max_attempts: 100, delay: 50ms}}\n")}, trust...)...)
	require.Equal(t, 0, got.code, got.stderr)
	_, _ = background(t, append([]string{"worker", "--mode", "attach", "--exec", "echo=cat", "--log-level", "error"}, trust...)...)
	got = call(t, append([]string{"task", "start", "far", "--wait"}, trust...)...)
	require.Equal(t, 0, got.code, got.stdout+got.stderr)

	got = call(t, "flow", "list", "--server", url, "--ca", ca.File)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "a client certificate is needed")
	require.Contains(t, got.stderr, "hint: show one (--client-cert, --client-key)")
}

func TestFaultsOfTLSAreExplained(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	url := startServe(t, "--tls-cert", own.Cert, "--tls-key", own.Key)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"expired": {[]string{"--server", expired(t, ca), "--ca", ca.File}, "expired on "},
		"unknown authority": {[]string{"--server", url},
			"is signed by an unknown authority\nhint: set --ca or TROUPE_CA to its CA file"},
		"no file": {[]string{"--server", url, "--ca", "/nowhere.pem"}, "open /nowhere.pem"},
		"plain to TLS": {[]string{"--server", strings.Replace(url, "https:", "http:", 1)},
			"this address speaks TLS\nhint: write https:// in place of http://"},
		"TLS to plain": {[]string{"--server", strings.Replace(plain.URL, "http:", "https:",
			1)}, "does not use TLS\nhint: use http://"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, append([]string{"flow", "list"}, tt.args...)...)
			require.NotZero(t, got.code)
			require.Contains(t, got.stderr, tt.want)
		})
	}
}

// expired starts a server with an expired certificate and returns its address.
func expired(t *testing.T, ca *certtest.Authority) string {
	t.Helper()
	old := ca.IssueUntil(t, time.Now().Add(-time.Hour))
	pair, err := tls.LoadX509KeyPair(old.Cert, old.Key)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func TestAMemberWithClientCertificatesMayListenPublicly(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	got := call(t, "serve", "--listen", "0.0.0.0:0", "--tls-cert", own.Cert, "--tls-key", own.Key)
	require.Contains(t, got.stderr, "can be reached from other hosts", "a certificate of its own lets everybody in")
	line, _ := background(t, "serve", "--listen", "0.0.0.0:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "t.db"),
		"--tls-cert", own.Cert, "--tls-key", own.Key, "--tls-client-ca", ca.File)
	require.Contains(t, line, "https://127.0.0.1:")
}
