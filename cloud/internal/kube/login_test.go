package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const v1 = "client.authentication.k8s.io/v1"

// asking returns the access of a user with a credential plugin: a shell script of these lines in
// the returned folder.
func asking(t *testing.T, at, lines, more string) (c *clusterAccess, dir string) {
	path := written(t, "server: "+at+", insecure-skip-tls-verify: true, extensions: [{name: "+
		"client.authentication.k8s.io/exec, extension: {audience: a}}]",
		"exec: {apiVersion: "+v1+", command: ./login, args: [one], env: [{name: OWN, value: two}], interactiveMode: IfAvailable"+more+"}")
	dir = filepath.Dir(path)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "login"),
		[]byte("#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho >> asked\n"+lines), 0o700))
	c, err := readKubeconfig(path)
	require.NoError(t, err)
	return c, dir
}

// printCredential returns a shell line that prints a credential.
func printCredential(status string) string {
	return fmt.Sprintf(`printf '{"apiVersion": "%s", "kind": "ExecCredential", "status": {%s}}' "$@"`, v1, status) + "\n"
}

// timesAsked returns how often the plugin ran.
func timesAsked(t *testing.T, dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	return len(text)
}

func TestPluginTokenIsKeptUntilItExpires(t *testing.T) {
	at, _ := server(t)
	c, dir := asking(t, at.String(), `printf %s "$KUBERNETES_EXEC_INFO" > info; echo $OWN > own`+
		"\n"+printCredential(`"token": "%s", "expirationTimestamp": "2999-01-01T00:00:00Z"`),
		", provideClusterInfo: true")
	require.Equal(t, "Bearer one", asks(t, c))
	require.Equal(t, "Bearer one", asks(t, c))
	require.Equal(t, 1, timesAsked(t, dir))
	c.login.expiresAt = time.Now()
	require.Equal(t, "Bearer one", asks(t, c))
	require.Equal(t, 2, timesAsked(t, dir))

	own, err := os.ReadFile(filepath.Join(dir, "own"))
	require.NoError(t, err)
	require.Equal(t, "two\n", string(own))
	var info map[string]any
	text, err := os.ReadFile(filepath.Join(dir, "info"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &info))
	require.Equal(t, map[string]any{"apiVersion": v1, "kind": "ExecCredential", "spec": map[string]any{"interactive": false,
		"cluster": map[string]any{"server": at.String(), "insecure-skip-tls-verify": true,
			"config": map[string]any{"audience": "a"}}}}, info)
}

func TestRejectedPluginTokenIsRequestedAgain(t *testing.T) {
	taken := "Bearer 2"
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != taken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"metadata": {"name": %q}}`, taken)
	}))
	t.Cleanup(s.Close)
	c, dir := asking(t, s.URL, `printf '{"apiVersion": "`+v1+
		`", "kind": "ExecCredential", "status": {"token": "%d"}}' $(wc -l < asked)`, "")
	k := &kubeClient{clusterAccess: *c, http: s.Client()}
	_, err := k.getJob(t.Context(), "n", "j")
	require.Equal(t, http.StatusUnauthorized, codeOf(err), "a program that has just told it has no better one")
	require.Equal(t, 1, timesAsked(t, dir))
	c.login.askedAt = time.Now().Add(-time.Minute)
	j, err := k.getJob(t.Context(), "n", "j")
	require.NoError(t, err)
	require.Equal(t, "Bearer 2", j.Metadata.Name)
	require.Equal(t, 2, timesAsked(t, dir))
}

func TestPluginWithoutTokenReportsTheReason(t *testing.T) {
	for lines, want := range map[string]string{
		"echo first >&2; echo no session >&2; exit 3": "exit status 3: no session",
		"echo hello": "what it prints is no ExecCredential",
		`echo '{"kind": "ExecCredential", "apiVersion": "` + loginGroup + `v1beta1"}'`: "not with an ExecCredential of " + v1,
		printCredential(`"token": ""`):                                        "it tells no token",
		printCredential(`"clientCertificateData": "x", "clientKeyData": "y"`): "a certificate and no token",
	} {
		c, dir := asking(t, "https://127.0.0.1:1", lines, "")
		for range 2 { // it is not run again at once
			_, err := (&kubeClient{clusterAccess: *c}).bearerToken(t.Context())
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, 1, timesAsked(t, dir))
	}
	c, err := readKubeconfig(written(t, "server: https://k",
		"exec: {apiVersion: "+v1+", command: troupe-no-such-program, installHint: get it there}"))
	require.NoError(t, err)
	_, err = (&kubeClient{clusterAccess: *c}).bearerToken(t.Context())
	require.ErrorContains(t, err, "get it there")
}

func TestKubeconfigTokenTakesPrecedenceOverPlugin(t *testing.T) {
	c, err := readKubeconfig(written(t, "server: https://k", "token: here, exec: {apiVersion: "+v1+", command: c}"))
	require.NoError(t, err)
	token, err := (&kubeClient{clusterAccess: *c}).bearerToken(t.Context())
	require.NoError(t, err)
	require.Equal(t, "here", token)
}
