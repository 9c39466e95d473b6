package kube

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// server is an API server that returns the Authorization header.
func server(t *testing.T) (at *url.URL, authority []byte) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"metadata": {"name": %q}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	require.NoError(t, err)
	return at, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// asks returns the Authorization header of a client.
func asks(t *testing.T, c *clusterAccess) string {
	transport := &http.Transport{TLSClientConfig: c.tls}
	defer transport.CloseIdleConnections()
	j, err := (&kubeClient{clusterAccess: *c, http: &http.Client{Transport: transport}}).getJob(t.Context(), "n", "j")
	require.NoError(t, err)
	return j.Metadata.Name
}

func TestPodUsesItsServiceAccountAndReloadsTheToken(t *testing.T) {
	at, authority := server(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), authority, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("one\n"), 0o600))
	host, port, err := net.SplitHostPort(at.Host)
	require.NoError(t, err)
	c, err := inClusterAccess(host, port, dir)
	require.NoError(t, err)
	require.Equal(t, "Bearer one", asks(t, c))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("two"), 0o600))
	require.Equal(t, "Bearer two", asks(t, c))
}

// written writes a kubeconfig with one cluster and one user.
func written(t *testing.T, cluster, user string) string {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {%s}}]
users: [{name: u, user: {%s}}]
`, cluster, user), 0o600))
	return path
}

func TestKubeconfigSetsTheAccessToACluster(t *testing.T) {
	at, authority := server(t)
	data := base64.StdEncoding.EncodeToString(authority)
	path := written(t, "server: "+at.String()+"/, certificate-authority-data: "+data, "tokenFile: token")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "token"), []byte("beside"), 0o600))
	c, err := readKubeconfig(path)
	require.NoError(t, err)
	require.Equal(t, "Bearer beside", asks(t, c))
	c, err = readKubeconfig(written(t, "server: "+at.String()+", insecure-skip-tls-verify: true", "token: here"))
	require.NoError(t, err)
	require.Equal(t, "Bearer here", asks(t, c))

	t.Setenv("KUBECONFIG", path)
	c, err = findCluster("")
	require.NoError(t, err)
	require.Equal(t, "Bearer beside", asks(t, c))
}

func TestUnusableKubeconfigReportsTheReason(t *testing.T) {
	for path, want := range map[string]string{
		written(t, "server: https://k",
			"exec: {command: get-token}"): `asks another program for a token in version ""`,
		written(t, "server: https://k", "exec: {apiVersion: "+v1+"}"):                                      "does not name it",
		written(t, "server: https://k", "exec: {apiVersion: "+v1+", command: c, interactiveMode: Always}"): "needs somebody at a terminal",
		written(t, "server: https://k", "auth-provider: {name: gcp}"):                                      "has an auth-provider",
		written(t, "insecure-skip-tls-verify: true",
			"token: t"): `the context "c", which is the current one, names no cluster with a server`,
		written(t, "server: https://k, certificate-authority-data: eA==",
			"token: t"): "authority cannot be read",
		written(t, "server: https://k, certificate-authority: none.pem", "token: t"):            "none.pem",
		written(t, "server: https://k", "client-certificate-data: eA==, client-key-data: eA=="): "PEM",
	} {
		_, err := readKubeconfig(path)
		require.ErrorContains(t, err, want)
	}
	_, err := readKubeconfig(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
