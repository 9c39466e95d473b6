package api

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TLSFiles are the files of PEM that a member's TLS is made of. The zero value is no TLS.
type TLSFiles struct {
	Cert, Key string // the member's certificate with those between it and its authority, and its key
	ClientCA  string // authorities that sign the certificates of clients; with it every client needs one
	CA        string // authorities that the servers which the member calls are checked against; "" = the system's
}

// Certificates are what a member proves itself with, and checks others by. Files that change are
// read again, as they are when the next connection comes: what cannot be used changes nothing, and
// is logged once.
type Certificates struct {
	files   TLSFiles
	log     *slog.Logger
	every   time.Duration // how often files are looked at, at most
	current atomic.Pointer[tlsTrust]

	mu            sync.Mutex // of the rest; who looks at the files has it
	checkedAt     time.Time
	held          [][]byte // what the files held when they were read last
	lastReadError string   // why they could not be
}

// tlsTrust is what the files hold.
type tlsTrust struct {
	server *tls.Config    // nil = the member has no certificate
	roots  *x509.CertPool // nil = the system's
}

// LoadCertificates reads the files. Files without a certificate for the member serve to check
// others only.
func LoadCertificates(files TLSFiles, log *slog.Logger) (*Certificates, error) {
	if (files.Cert == "") != (files.Key == "") || files.ClientCA != "" && files.Cert == "" {
		return nil, errors.New("TLS: a certificate and its key belong together: give both (--tls-cert, --tls-key)")
	}
	c := &Certificates{files: files, log: log, every: time.Second}
	held, err := c.readFiles()
	if err == nil {
		c.held = held
		err = c.useFiles(held)
	}
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return c, nil
}

// Serves reports whether the member has a certificate of its own.
func (c *Certificates) Serves() bool { return c != nil && c.files.Cert != "" }

// needsClients reports whether every client needs a certificate.
func (c *Certificates) needsClients() bool { return c.Serves() && c.files.ClientCA != "" }

// Lacks reports whether a client needs a certificate and has shown none.
func (c *Certificates) Lacks(r *http.Request) bool {
	return c.needsClients() && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0)
}

// Server is for a listener: it has the newest certificate for every connection that comes.
func (c *Certificates) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c.reloadIfDue()
			return c.current.Load().server, nil
		},
	}
}

// Client is for one connection to another: it checks that one, and shows the member's certificate
// to who asks for one.
func (c *Certificates) Client() *tls.Config {
	c.reloadIfDue()
	now := c.current.Load()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: now.roots}
	if now.server != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &now.server.Certificates[0], nil
		}
	}
	return cfg
}

// reloadIfDue takes up what the files hold now. Whoever comes while another looks is served with
// what there is.
func (c *Certificates) reloadIfDue() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if time.Since(c.checkedAt) < c.every {
		return
	}
	c.checkedAt = time.Now()
	held, err := c.readFiles()
	if err != nil {
		if c.lastReadError != err.Error() {
			c.lastReadError = err.Error()
			c.logKeptCertificate(err)
		}
		return
	}
	c.lastReadError = ""
	if slices.EqualFunc(held, c.held, bytes.Equal) {
		return
	}
	c.held = held
	if err := c.useFiles(held); err != nil {
		c.logKeptCertificate(err)
		return
	}
	if !c.Serves() {
		c.log.Info("the TLS authorities were reloaded", "file", c.files.CA)
		return
	}
	c.log.Info("the TLS certificate was reloaded", "file", c.files.Cert, "ends", c.currentLeaf().NotAfter)
}

func (c *Certificates) logKeptCertificate(err error) {
	c.log.Error("the TLS certificate, or an authority, has changed and cannot be used: the one from before stays in use", "error", err)
}

// readFiles gives what is in the files, in the order certificate, key, authorities of clients,
// authorities of others; nil = there is no such file.
func (c *Certificates) readFiles() ([][]byte, error) {
	var held [][]byte
	for _, file := range []string{c.files.Cert, c.files.Key, c.files.ClientCA, c.files.CA} {
		if file == "" {
			held = append(held, nil)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		held = append(held, text)
	}
	return held, nil
}

// useFiles makes what was read the current trust.
func (c *Certificates) useFiles(held [][]byte) (err error) {
	next := &tlsTrust{}
	if c.files.CA != "" {
		if next.roots, err = parseAuthorities(c.files.CA, held[3]); err != nil {
			return err
		}
	}
	if !c.Serves() {
		c.current.Store(next)
		return nil
	}
	if next.server, err = c.serverConfig(held); err != nil {
		return err
	}
	c.current.Store(next)
	if end := c.currentLeaf().NotAfter; time.Now().After(end) {
		c.log.Warn("the TLS certificate has expired: clients refuse it", "file", c.files.Cert, "ended", end)
	}
	return nil
}

func (c *Certificates) serverConfig(held [][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(held[0], held[1])
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", c.files.Cert, c.files.Key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.needsClients() {
		if cfg.ClientCAs, err = parseAuthorities(c.files.ClientCA, held[2]); err != nil {
			return nil, err
		}
		// One that comes without is answered in words. Probes are let in: those who probe have no
		// certificate.
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		cfg.SessionTicketsDisabled = true // who was let in by an authority of before is checked anew
	}
	return cfg, nil
}

// currentLeaf is the certificate in use.
func (c *Certificates) currentLeaf() *x509.Certificate {
	return c.current.Load().server.Certificates[0].Leaf
}

// expiryCollector tells when the certificate in use ends.
func (c *Certificates) expiryCollector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "troupe_tls_certificate_ends_seconds", Help: "When the TLS certificate in use ends, in seconds since 1970.",
	}, func() float64 { return float64(c.currentLeaf().NotAfter.Unix()) })
}

func parseAuthorities(file string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate: it is to have those of authorities, as PEM", file)
	}
	return pool, nil
}
