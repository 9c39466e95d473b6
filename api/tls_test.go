package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
)

// serveTLS serves over TLS with the given files and checks them at every handshake.
func serveTLS(t *testing.T, files transport.TLSFiles) (*serving, *lines) {
	t.Helper()
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	certificates, err := transport.LoadCertificates(files, logger)
	require.NoError(t, err)
	api.LookAlways(certificates)
	apart := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := serve(t, api.Config{TLS: certificates, Member: api.Member{Logger: logger}, Apart: map[string]http.Handler{"/apart/": apart}})
	s.url = strings.Replace(s.url, "http://", "https://", 1)
	return s, &log
}

// visitor returns a client that trusts an authority and may have a certificate of its own.
func visitor(t *testing.T, ca string, own ...certtest.Pair) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca)
	require.NoError(t, err)
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	require.True(t, cfg.RootCAs.AppendCertsFromPEM(text))
	for _, p := range own {
		pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		require.NoError(t, err)
		// Sent regardless of the authorities that the server names.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get returns the answer for a path, with its whole body.
func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestAMemberServesTLSAndHTTP2(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	s, _ := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	resp, _ := get(t, visitor(t, ca.File), s.url+"/readyz")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, 2, resp.ProtoMajor)
	require.GreaterOrEqual(t, resp.TLS.Version, uint16(tls.VersionTLS12))

	_, body := get(t, visitor(t, ca.File), s.url+"/metrics")
	require.Contains(t, body, "troupe_tls_certificate_expiry_timestamp_seconds", "an operator hears of it before it ends")
}

func TestPlainHTTPToATLSPortGetsAnExplanation(t *testing.T) {
	own := certtest.New(t).Issue(t)
	s, log := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	for range 3 {
		resp, body := get(t, http.DefaultClient, strings.Replace(s.url, "https://", "http://", 1)+"/readyz")
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.Contains(t, body, "HTTP request to an HTTPS server")
	}
	s.leave()
	require.NoError(t, <-s.left)
	require.Equal(t, 1, strings.Count(log.text(), "client sent an HTTP request to an HTTPS server"), log.text())
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	s, _ := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	_, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true})
	require.ErrorContains(t, err, "protocol version")
}

func TestACertificateIsReloadedAndConnectionsStay(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	s, log := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	stays, comes := visitor(t, ca.File), visitor(t, ca.File)
	resp, _ := get(t, stays, s.url+"/healthz")
	before := resp.TLS.PeerCertificates[0].SerialNumber

	ca.Renew(t, own, time.Now().Add(time.Hour))
	resp, _ = get(t, comes, s.url+"/healthz")
	require.NotEqual(t, before, resp.TLS.PeerCertificates[0].SerialNumber, "who comes later sees the new one")
	resp, _ = get(t, stays, s.url+"/healthz")
	require.Equal(t, before, resp.TLS.PeerCertificates[0].SerialNumber, "its connection was not touched")
	require.Equal(t, 1, strings.Count(log.text(), "TLS certificate reloaded"), log.String())
}

func TestABrokenPairKeepsTheOldOneAndIsLoggedOnce(t *testing.T) {
	ca := certtest.New(t)
	own, other := ca.Issue(t), ca.Issue(t)
	s, log := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	key, err := os.ReadFile(other.Key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(own.Key, key, 0o600), "a key of another certificate")
	for range 3 {
		resp, _ := get(t, visitor(t, ca.File), s.url+"/healthz")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.NoError(t, os.Remove(own.Key))
	for range 3 {
		resp, _ := get(t, visitor(t, ca.File), s.url+"/healthz")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.Equal(t, 2, strings.Count(log.text(), "the previous ones stay in use"),
		"once for each thing that is wrong: %s", log.String())

	ca.Renew(t, own, time.Now().Add(time.Hour))
	resp, _ := get(t, visitor(t, ca.File), s.url+"/healthz")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, log.text(), "TLS certificate reloaded")
}

func TestAnAuthorityOfOthersIsReloaded(t *testing.T) {
	before, after := certtest.New(t), certtest.New(t)
	own := after.Issue(t)
	s, _ := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key})
	for name, files := range map[string]transport.TLSFiles{
		"of one who has a certificate": {Cert: own.Cert, Key: own.Key}, "of one who has none": {},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			files.CA = filepath.Join(t.TempDir(), "ca.pem")
			put := func(from string) {
				text, err := os.ReadFile(from)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(files.CA, text, 0o600))
			}
			put(before.File)
			certificates, err := transport.LoadCertificates(files, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			api.LookAlways(certificates)
			visit := func() error {
				conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), certificates.Client())
				if err != nil {
					return err
				}
				return conn.Close()
			}
			require.ErrorContains(t, visit(), "unknown authority")
			put(own.Key)
			require.ErrorContains(t, visit(), "unknown authority", "what holds no certificate changes nothing")
			require.Equal(t, 1, strings.Count(log.text(), "reloading TLS files failed"), log.text())
			put(after.File)
			require.NoError(t, visit())
			require.Contains(t, log.text(), "reloaded")
		})
	}
}

func TestAClientCertificateIsRequired(t *testing.T) {
	ca, strangers := certtest.New(t), certtest.New(t)
	own, clients := ca.Issue(t), certtest.New(t)
	s, log := serveTLS(t, transport.TLSFiles{Cert: own.Cert, Key: own.Key, ClientCA: clients.File})

	resp, body := get(t, visitor(t, ca.File), s.url+"/apart/x")
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "other members show theirs, too")
	require.Contains(t, body, "a client certificate is needed")
	resp, _ = get(t, visitor(t, ca.File, clients.Issue(t)), s.url+"/apart/x")
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	resp, body = get(t, visitor(t, ca.File), s.url+"/metrics")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Contains(t, body, "a client certificate is needed")
	resp, _ = get(t, visitor(t, ca.File), s.url+"/readyz")
	require.Equal(t, http.StatusOK, resp.StatusCode, "who probes has none")
	resp, _ = get(t, visitor(t, ca.File, clients.Issue(t)), s.url+"/metrics")
	require.Equal(t, http.StatusOK, resp.StatusCode)

	for wrong, why := range map[certtest.Pair]string{
		strangers.Issue(t): "unknown authority",
		clients.IssueUntil(t, time.Now().Add(-time.Hour)): "has expired",
	} {
		for range 3 {
			_, err := visitor(t, ca.File, wrong).Get(s.url + "/metrics")
			require.Error(t, err)
		}
		require.Eventually(t, func() bool { return strings.Count(log.text(), why) == 1 },
			time.Minute, time.Millisecond, "%s: %s", why, log.text())
	}
}

func TestFilesThatCannotBeUsedAreRefusedAtTheStart(t *testing.T) {
	ca := certtest.New(t)
	own, other := ca.Issue(t), ca.Issue(t)
	for name, tt := range map[string]struct {
		files transport.TLSFiles
		want  string
	}{
		"a key without certificate": {transport.TLSFiles{Key: own.Key},
			"a certificate and its key belong together: give both (--tls-cert, --tls-key)"},
		"a certificate without key":   {transport.TLSFiles{Cert: own.Cert}, "belong together"},
		"client CA without TLS":       {transport.TLSFiles{ClientCA: ca.File}, "belong together"},
		"no such file":                {transport.TLSFiles{Cert: "/nowhere.pem", Key: own.Key}, "open /nowhere.pem"},
		"a key of another":            {transport.TLSFiles{Cert: own.Cert, Key: other.Key}, "private key does not match"},
		"an authority that is none":   {transport.TLSFiles{Cert: own.Cert, Key: own.Key, ClientCA: own.Key}, "holds no certificate"},
		"a trusted one that is none":  {transport.TLSFiles{CA: own.Key}, "holds no certificate"},
		"a trusted one that is a gap": {transport.TLSFiles{CA: "/nowhere.pem"}, "open /nowhere.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transport.LoadCertificates(tt.files, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAnExpiredCertificateIsLoggedAtTheStart(t *testing.T) {
	own := certtest.New(t).IssueUntil(t, time.Now().Add(-time.Hour))
	var log lines
	_, err := transport.LoadCertificates(transport.TLSFiles{Cert: own.Cert, Key: own.Key}, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Contains(t, log.text(), "TLS certificate expired")
}

func TestTLSConnectionsAtWorkAreNotCutForOthers(t *testing.T) {
	ca := certtest.New(t)
	own := ca.Issue(t)
	certificates, err := transport.LoadCertificates(transport.TLSFiles{Cert: own.Cert, Key: own.Key}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	begun, others := make(chan struct{}), make(chan struct{})
	s := serve(t, api.Config{TLS: certificates, Connections: 2}, func(s *api.Server) {
		s.MountOpen("GET /work", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-others
			w.WriteHeader(http.StatusTeapot)
		}))
	})
	url := strings.Replace(s.url, "http://", "https://", 1)
	worked := make(chan int, 1)
	working := visitor(t, ca.File)
	go func() {
		resp, err := working.Get(url + "/work")
		if err != nil {
			worked <- 0
			return
		}
		resp.Body.Close()
		worked <- resp.StatusCode
	}()
	<-begun
	for range 3 { // each replaces the one before, never the busy one
		resp, _ := get(t, visitor(t, ca.File), url+"/healthz")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	close(others)
	require.Equal(t, http.StatusTeapot, <-worked)
}
