// Package fakes implements the used parts of cloud APIs in this process, for tests without an
// account.
//
// Promises: the answers have independently written formats, which the vendors' own clients parse in
// this package's tests. An unknown path is not found, and a request without the right token is
// refused.
package fakes

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Google fakes the APIs of Google Cloud at one address, with their token server.
type Google struct {
	URL    string
	Run    *Run
	Jobs   *Jobs
	server *httptest.Server
	requestRecorder

	tokensMu sync.Mutex
	tokens   map[string]bool // by the Authorization header; false if expired
}

// NewGoogle starts a server that runs until the test ends.
func NewGoogle(t testing.TB) *Google {
	mux := http.NewServeMux()
	g := &Google{Run: newRun(), Jobs: newJobs(mux), tokens: map[string]bool{}}
	mux.Handle("/v2/", g.Run)
	g.isAuthorized = g.isValidToken
	g.refuse = func(w http.ResponseWriter, status int, text string) { writeRefusal(w, status, "", text) }
	all := http.NewServeMux()
	all.HandleFunc("POST /token", g.issueToken)
	all.Handle("/", g.recordFirst(mux))
	g.server = httptest.NewServer(all)
	g.URL = g.server.URL
	t.Cleanup(g.server.Close)
	return g
}

// issueToken returns a token for an hour. Each token differs, and earlier ones stay valid, because
// several processes share one account.
func (g *Google) issueToken(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || r.FormValue("assertion") == "" {
		http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
		return
	}
	g.tokensMu.Lock()
	token := fmt.Sprintf("token-%d", len(g.tokens)+1)
	g.tokens["Bearer "+token] = true
	g.tokensMu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
}

func (g *Google) isValidToken(authorization string) bool {
	g.tokensMu.Lock()
	defer g.tokensMu.Unlock()
	return g.tokens[authorization]
}

// Expire expires all tokens.
func (g *Google) Expire() {
	g.tokensMu.Lock()
	defer g.tokensMu.Unlock()
	for token := range g.tokens {
		g.tokens[token] = false
	}
}

// Tokens returns the number of issued tokens.
func (g *Google) Tokens() int {
	g.tokensMu.Lock()
	defer g.tokensMu.Unlock()
	return len(g.tokens)
}

// writeRefusal writes an error in the format of Google's APIs.
func writeRefusal(w http.ResponseWriter, status int, word, text string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"code": status, "message": text, "status": word}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a disconnected client asks again
}

// Credentials writes the credentials of a valid account and returns the path of the file.
func (g *Google) Credentials(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "k",
		"client_email": "member@p.iam.gserviceaccount.com", "client_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": g.URL + "/token",
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}
