package client_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
)

// startTLS serves an empty page over TLS and counts the requests.
func startTLS(t *testing.T, files transport.TLSFiles) (url string, asked *atomic.Int32) {
	t.Helper()
	certificates, err := transport.LoadCertificates(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	asked = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if files.ClientCA != "" && len(r.TLS.VerifiedChains) == 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"items": []}`))
	}))
	s.TLS = certificates.Server()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, asked
}

func listFlows(t *testing.T, url string, trust client.Trust) error {
	t.Helper()
	c, err := client.New(url, client.Options{Trust: trust})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Flows(t.Context(), client.Paging{})
	return err
}

func TestAPrivateAuthorityIsBelieved(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	url, asked := startTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	require.NoError(t, listFlows(t, url, client.Trust{CA: ca.File}))
	require.EqualValues(t, 1, asked.Load())
}

func TestUntrustedCertificatesAreReportedAtOnce(t *testing.T) {
	ca := certtest.New(t)
	good, old := ca.Issue(t), ca.IssueUntil(t, time.Now().Add(-time.Hour))
	fine, _ := startTLS(t, transport.TLSFiles{Cert: good.Cert, Key: good.Key})
	expired, _ := startTLS(t, transport.TLSFiles{Cert: old.Cert, Key: old.Key})
	for name, tt := range map[string]struct {
		url, ca, want string
	}{
		"expired":           {expired, ca.File, "certificate has expired"},
		"of nobody we know": {fine, "", "unknown authority"},
		"of another":        {fine, certtest.New(t).File, "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			err := listFlows(t, tt.url, client.Trust{CA: tt.ca})
			var refused *tls.CertificateVerificationError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, tt.want)
			require.Less(t, time.Since(begun), 5*time.Second, "trying again does not help")
		})
	}
}

func TestAClientCertificateIsShown(t *testing.T) {
	ca, clients := certtest.New(t), certtest.New(t)
	own, mine := ca.Issue(t), clients.Issue(t)
	url, _ := startTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key, ClientCA: clients.File})
	require.Equal(t, "denied", client.KindOf(listFlows(t, url, client.Trust{CA: ca.File})))
	require.NoError(t, listFlows(t, url, client.Trust{CA: ca.File, Cert: mine.Cert, Key: mine.Key}))
}

func TestTheWrongSchemeIsNamed(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	url, _ := startTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	require.ErrorContains(t, listFlows(t, strings.Replace(url, "https:", "http:", 1),
		client.Trust{}), "this address speaks TLS: write https://")

	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	begun := time.Now()
	require.ErrorContains(t, listFlows(t, strings.Replace(plain.URL, "http:", "https:", 1),
		client.Trust{}), "server gave HTTP response to HTTPS client")
	require.Less(t, time.Since(begun), 5*time.Second, "trying again does not help")
}

func TestTrustThatCannotBeUsedIsRefused(t *testing.T) {
	own := certtest.New(t).Issue(t)
	for want, trust := range map[string]client.Trust{
		"holds no certificate":  {CA: own.Key},
		"open /nowhere.pem":     {CA: "/nowhere.pem"},
		"belong together":       {Cert: own.Cert},
		"failed to find":        {Cert: own.Key, Key: own.Cert},
		"or a client of its ow": {CA: own.Cert},
	} {
		o := client.Options{Trust: trust}
		if strings.HasPrefix(want, "or a client") {
			o.HTTPClient = &http.Client{}
		}
		_, err := client.New("https://127.0.0.1", o)
		require.ErrorContains(t, err, want)
	}
}
