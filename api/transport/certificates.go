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
	Cert, Key string // certificate with intermediate certificates, and key of the member
	ClientCA  string // authorities for client certificates; if set, every client needs one
	CA        string // authorities to verify other servers; "" means those of the system
}

// Certificates holds a member's certificate and trusted authorities. It reads changed files again
// before the next connection. An unusable file changes nothing and is logged once.
type Certificates struct {
	files         TLSFiles
	log           *slog.Logger
	CheckInterval time.Duration // minimum time between two checks of the files
	current       atomic.Pointer[tlsTrust]

	mu            sync.Mutex // guards the fields below; held while the files are checked
	checkedAt     time.Time
	held          [][]byte // contents of the files at the last read
	lastReadError string   // error of the last read; "" if there was none
}

// tlsTrust holds the parsed contents of the files.
type tlsTrust struct {
	server *tls.Config    // nil if the member has no certificate
	roots  *x509.CertPool // nil means the authorities of the system
}

// LoadCertificates reads the files. Without a member certificate, they only serve to verify others.
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

// Serves reports whether the member has a certificate.
func (c *Certificates) Serves() bool { return c != nil && c.files.Cert != "" }

// needsClients reports whether every client needs a certificate.
func (c *Certificates) needsClients() bool { return c.Serves() && c.files.ClientCA != "" }

// Lacks reports whether the client of a request needs a certificate and sent no valid one.
func (c *Certificates) Lacks(r *http.Request) bool {
	return c.needsClients() && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0)
}

// Server returns the TLS configuration for a listener. Each new connection uses the newest
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

// Client returns the TLS configuration for one outgoing connection. It verifies the server, and
// sends the member's certificate on request.
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

// reloadIfDue loads files that have changed. While one goroutine checks, the others use the current
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

// readFiles returns the contents of the files: certificate, key, authorities for clients,
// authorities for servers. The content is nil for a file that is not configured.
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

// useFiles parses the given contents and makes them the current trust.
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
		// A client without a certificate gets an answer that explains the problem. Probes are
		// admitted, because they have no certificate.
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		// clients that an earlier authority admitted are verified again
		cfg.SessionTicketsDisabled = true
	}
	return cfg, nil
}

// currentLeaf returns the certificate in use.
func (c *Certificates) currentLeaf() *x509.Certificate {
	return c.current.Load().server.Certificates[0].Leaf
}

// ExpiryCollector exports the expiry time of the certificate in use.
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
