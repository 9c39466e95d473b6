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

// Trust is files of PEM that say whom a client believes over TLS, and how it proves itself. The
// zero value believes the authorities of the system and has no certificate.
type Trust struct {
	CA        string // authorities to believe in place of the system's; read once
	Cert, Key string // certificate to show to who asks for one, and its key; read for each connection, so they may change
}

// dialTime is how long a host may take to accept a connection.
const dialTime = 5 * time.Second

// Transport is the standard library's with that trust, which waits less long for a host that is not
// there.
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
	_, err := pair() // what cannot be used is told at once
	return cfg, err
}

// isDistrusted says that a server will be believed no more the next time: its certificate is not
// good, or it has none.
func isDistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch)
}

// chooseHTTPClient chooses the HTTP client. Who knows one server and trusts as everybody does
// shares the connections of everybody.
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
