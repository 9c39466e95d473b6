package transport

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

// TLSFiles names the PEM files for a member's TLS. The zero value means no TLS.
type TLSFiles struct {
	Cert, Key string // the member's certificate with its intermediate certificates, and its key
	ClientCA  string // authorities that sign the certificates of clients; with it every client needs one
	CA        string // authorities that the member checks other servers against; "" = the system's
}

// Certificates holds a member's certificate and the authorities it checks others against. Files
// that change are read again before the next connection. A file that cannot be used changes nothing
// and is logged once.
type Certificates struct {
	files         TLSFiles
	log           *slog.Logger
	CheckInterval time.Duration // shortest time between two checks of the files
	current       atomic.Pointer[tlsTrust]

	mu            sync.Mutex // guards the fields below; held while the files are checked
	checkedAt     time.Time
	held          [][]byte // contents of the files at the last read
	lastReadError string   // error of the last read; "" if there was none
}

// tlsTrust holds the parsed contents of the files.
type tlsTrust struct {
	server *tls.Config    // nil = the member has no certificate
	roots  *x509.CertPool // nil = the system's
}

// LoadCertificates reads the files. Without a certificate for the member they only serve to check
// others.
func LoadCertificates(files TLSFiles, log *slog.Logger) (*Certificates, error) {
	if (files.Cert == "") != (files.Key == "") || files.ClientCA != "" && files.Cert == "" {
		return nil, errors.New("TLS: a certificate and its key belong together: give both (--tls-cert, --tls-key)")
	}
	c := &Certificates{files: files, log: log, CheckInterval: time.Second}
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

// Lacks reports whether a client needs a certificate and has not shown one.
func (c *Certificates) Lacks(r *http.Request) bool {
	return c.needsClients() && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0)
}

// Server returns the TLS configuration of a listener. Each new connection uses the newest
// certificate.
func (c *Certificates) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c.reloadIfDue()
			return c.current.Load().server, nil
		},
	}
}

// Client returns the TLS configuration for one outgoing connection. It checks the other side, and
// shows the member's certificate on request.
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

// reloadIfDue loads files that have changed. While one caller checks, the others use the current
// certificates.
func (c *Certificates) reloadIfDue() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if time.Since(c.checkedAt) < c.CheckInterval {
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
		c.log.Info("TLS CA file reloaded", "file", c.files.CA)
		return
	}
	c.log.Info("TLS certificate reloaded", "file", c.files.Cert, "expires", c.currentLeaf().NotAfter)
}

func (c *Certificates) logKeptCertificate(err error) {
	c.log.Error("reloading TLS files failed: the previous ones stay in use", "error", err)
}

// readFiles returns the contents of the files in the order certificate, key, authorities of
// clients, authorities of servers; nil for files that are not configured.
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

// useFiles makes the given contents the current trust.
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
		c.log.Warn("TLS certificate expired: clients reject it", "file", c.files.Cert, "expired", end)
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
		// A client without a certificate gets an answer that explains this. Probes are admitted,
		// because they have no certificate.
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		// so clients admitted by a previous authority are checked again
		cfg.SessionTicketsDisabled = true
	}
	return cfg, nil
}

// currentLeaf returns the certificate in use.
func (c *Certificates) currentLeaf() *x509.Certificate {
	return c.current.Load().server.Certificates[0].Leaf
}

// ExpiryCollector exports when the certificate in use expires.
func (c *Certificates) ExpiryCollector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "troupe_tls_certificate_expiry_timestamp_seconds", Help: "Expiry time of the TLS certificate in use, in seconds since 1970.",
	}, func() float64 { return float64(c.currentLeaf().NotAfter.Unix()) })
}

func parseAuthorities(file string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate: it is to have those of authorities, as PEM", file)
	}
	return pool, nil
}
