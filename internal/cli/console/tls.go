package console

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
)

// TLSFlags holds a member's TLS settings.
type TLSFlags struct {
	TLSCert     string `env:"TROUPE_TLS_CERT" name:"tls-cert" placeholder:"FILE" group:"TLS" help:"TLS certificate file (PEM). It is reloaded when it changes."`
	TLSKey      string `env:"TROUPE_TLS_KEY" name:"tls-key" placeholder:"FILE" group:"TLS" help:"Private key file of the TLS certificate (PEM)."`
	TLSClientCA string `env:"TROUPE_TLS_CLIENT_CA" name:"tls-client-ca" placeholder:"FILE" group:"TLS" help:"Require client certificates signed by a CA in this file. Health probes need none."`
	CA          string `env:"TROUPE_CA" name:"ca" placeholder:"FILE" group:"TLS" help:"CA file for outgoing https calls, instead of the system's."`
}

// SetTLSConfig sets the configuration of a member.
func (f *TLSFlags) SetTLSConfig(cfg *troupe.Config) {
	cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, cfg.CA = f.TLSCert, f.TLSKey, f.TLSClientCA, f.CA
}

// TrustFlags selects the authorities that a command trusts over https, and its own certificate.
type TrustFlags struct {
	CA         string `env:"TROUPE_CA" name:"ca" placeholder:"FILE" help:"CA file to verify an https server, instead of the system's."`
	ClientCert string `env:"TROUPE_CLIENT_CERT" placeholder:"FILE" help:"Client certificate file (PEM)."`
	ClientKey  string `env:"TROUPE_CLIENT_KEY" placeholder:"FILE" help:"Private key file of the client certificate (PEM)."`
}

// ClientTrust returns the settings for a client.
func (f *TrustFlags) ClientTrust() client.Trust {
	return client.Trust{CA: f.CA, Cert: f.ClientCert, Key: f.ClientKey}
}

// explainDistrust explains why TLS failed between this client and a server that was reached.
func explainDistrust(err error, server string) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var foreign x509.HostnameError
	var alert *net.OpError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().After(invalid.Cert.NotAfter):
		return fmt.Sprintf("the certificate of %s expired on %s\nhint: renew it; the server reloads it by itself",
			server, invalid.Cert.NotAfter.UTC().Format(time.DateTime+" MST"))
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s is signed by an unknown "+
			"authority\nhint: set --ca or TROUPE_CA to its CA file", server)
	case errors.As(err, &foreign):
		return fmt.Sprintf("the certificate of %s is for other hosts: %v\nhint: use a host name of the certificate", server, foreign)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s does not use TLS\nhint: use http:// instead of https://", server)
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Sprintf("%s ended the TLS handshake (%v)\nhint: if it requires a "+
			"client certificate, set --client-cert and --client-key", server, alert.Err)
	}
	return err.Error()
}
