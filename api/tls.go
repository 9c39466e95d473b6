package api

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
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

// Certificates are what a member proves itself with, and checks others by. Files that change are read again, as
// they are when the next connection comes: what cannot be used changes nothing, and is logged once.
type Certificates struct {
	files   TLSFiles
	log     *slog.Logger
	roots   *x509.CertPool // nil = the system's
	every   time.Duration  // how often files are looked at, at most
	current atomic.Pointer[tls.Config]

	mu     sync.Mutex // of the rest; who looks at the files has it
	looked time.Time
	held   [][]byte // what the files held when they were read last
	unread string   // why they could not be
}

// LoadCertificates reads the files. Files without a certificate for the member serve to check others only.
func LoadCertificates(files TLSFiles, log *slog.Logger) (*Certificates, error) {
	if (files.Cert == "") != (files.Key == "") || files.ClientCA != "" && files.Cert == "" {
		return nil, errors.New("TLS: a certificate and its key belong together: give both (--tls-cert, --tls-key)")
	}
	c := &Certificates{files: files, log: log, every: time.Second}
	if files.CA != "" {
		text, err := os.ReadFile(files.CA)
		if err == nil {
			c.roots, err = authorities(files.CA, text)
		}
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
	}
	if !c.Serves() {
		return c, nil
	}
	held, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	c.held = held
	if err := c.use(held); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return c, nil
}

// Serves says whether the member has a certificate of its own.
func (c *Certificates) Serves() bool { return c != nil && c.files.Cert != "" }

// needsClients says whether every client needs a certificate.
func (c *Certificates) needsClients() bool { return c.Serves() && c.files.ClientCA != "" }

// Server is for a listener: it has the newest certificate for every connection that comes.
func (c *Certificates) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c.look()
			return c.current.Load(), nil
		},
	}
}

// Client is for connections to others: it checks them, and shows the member's certificate to who asks for one.
func (c *Certificates) Client() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots}
	if c.Serves() {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c.look()
			return &c.current.Load().Certificates[0], nil
		}
	}
	return cfg
}

// look takes up what the files hold now. Whoever comes while another looks is served with what there is.
func (c *Certificates) look() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if time.Since(c.looked) < c.every {
		return
	}
	c.looked = time.Now()
	held, err := c.read()
	if err != nil {
		if c.unread != err.Error() {
			c.unread = err.Error()
			c.keep(err)
		}
		return
	}
	c.unread = ""
	if slices.EqualFunc(held, c.held, bytes.Equal) {
		return
	}
	c.held = held
	if err := c.use(held); err != nil {
		c.keep(err)
		return
	}
	c.log.Info("the TLS certificate was reloaded", "file", c.files.Cert, "ends", c.leaf().NotAfter)
}

func (c *Certificates) keep(err error) {
	c.log.Error("the TLS certificate has changed and cannot be used: the one from before stays in use", "error", err)
}

// read gives what is in the files, in the order certificate, key, authorities of clients.
func (c *Certificates) read() ([][]byte, error) {
	var held [][]byte
	for _, file := range []string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if file == "" {
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

// use makes what was read the current certificate.
func (c *Certificates) use(held [][]byte) error {
	pair, err := tls.X509KeyPair(held[0], held[1])
	if err != nil {
		return fmt.Errorf("%s with %s: %w", c.files.Cert, c.files.Key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.needsClients() {
		if cfg.ClientCAs, err = authorities(c.files.ClientCA, held[2]); err != nil {
			return err
		}
		// One that comes without is answered in words. Probes are let in: those who probe have no certificate.
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		cfg.SessionTicketsDisabled = true // who was let in by an authority of before is checked anew
	}
	c.current.Store(cfg)
	if end := c.leaf().NotAfter; time.Now().After(end) {
		c.log.Warn("the TLS certificate has expired: clients refuse it", "file", c.files.Cert, "ended", end)
	}
	return nil
}

// leaf is the certificate in use.
func (c *Certificates) leaf() *x509.Certificate { return c.current.Load().Certificates[0].Leaf }

// collector tells when the certificate in use ends.
func (c *Certificates) collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "troupe_tls_certificate_ends_seconds", Help: "When the TLS certificate in use ends, in seconds since 1970.",
	}, func() float64 { return float64(c.leaf().NotAfter.Unix()) })
}

func authorities(file string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate: it is to have those of authorities, as PEM", file)
	}
	return pool, nil
}
