package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Trust names PEM files for TLS: trusted authorities, and the client's certificate. The zero value
// trusts the authorities of the system and sends no certificate.
type Trust struct {
	CA string // authorities to trust instead of those of the system; read once
	// client certificate and its key; read again for each connection, so they may change
	Cert, Key string
}

// dialTime is how long a host may take to accept a connection.
const dialTime = 5 * time.Second

// Transport returns a transport like the default one with this trust. It has a shorter timeout for
// connecting.
func (t Trust) Transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}).DialContext
	if t == (Trust{}) {
		return transport, nil
	}
	cfg, err := t.tlsConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	transport.TLSClientConfig = cfg
	return transport, nil
}

func (t Trust) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate: it is to have those of authorities, as PEM", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate and its key belong together: give both")
	}
	if t.Cert == "" {
		return cfg, nil
	}
	pair := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		return &pair, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }
	_, err := pair() // reports unusable files immediately
	return cfg, err
}

// isDistrusted reports whether a retry is useless, because the server's certificate is invalid or
// missing.
func isDistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch)
}

// chooseHTTPClient sets the HTTP client. With one server and the default trust, it uses connections
// of http.DefaultTransport.
func (o *Options) chooseHTTPClient(several bool) error {
	switch {
	case o.HTTPClient != nil && o.Trust != (Trust{}):
		return errors.New("it is either Trust or a client of its own (HTTPClient) that says whom to believe")
	case o.HTTPClient != nil:
		return nil
	case o.Trust == (Trust{}) && !several:
		o.HTTPClient = &http.Client{}
		return nil
	}
	transport, err := o.Trust.Transport()
	o.HTTPClient = &http.Client{Transport: transport}
	return err
}
