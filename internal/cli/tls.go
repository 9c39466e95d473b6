package cli

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

// tlsFlags holds a member's TLS settings.
type tlsFlags struct {
	TLSCert     string `env:"TROUPE_TLS_CERT" name:"tls-cert" placeholder:"FILE" group:"TLS" help:"Speak TLS with the certificate of this file (PEM). It is read again when it changes."`
	TLSKey      string `env:"TROUPE_TLS_KEY" name:"tls-key" placeholder:"FILE" group:"TLS" help:"File of the certificate's key."`
	TLSClientCA string `env:"TROUPE_TLS_CLIENT_CA" name:"tls-client-ca" placeholder:"FILE" group:"TLS" help:"Let in only clients with a certificate of an authority in this file; probes need none."`
	CA          string `env:"TROUPE_CA" name:"ca" placeholder:"FILE" group:"TLS" help:"Authorities that whom this member calls by https is checked against, in place of the system's."`
}

func (f *tlsFlags) setTLSConfig(cfg *troupe.Config) {
	cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, cfg.CA = f.TLSCert, f.TLSKey, f.TLSClientCA, f.CA
}

// trustFlags selects the authorities that a command trusts over https, and its own certificate.
type trustFlags struct {
	CA         string `env:"TROUPE_CA" name:"ca" placeholder:"FILE" help:"Authorities to check an https server against, in place of the system's."`
	ClientCert string `env:"TROUPE_CLIENT_CERT" placeholder:"FILE" help:"Certificate to show to a server that asks for one."`
	ClientKey  string `env:"TROUPE_CLIENT_KEY" placeholder:"FILE" help:"Key of that certificate."`
}

func (f *trustFlags) clientTrust() client.Trust {
	return client.Trust{CA: f.CA, Cert: f.ClientCert, Key: f.ClientKey}
}

// explainDistrust explains a TLS failure between this client and a server that was reached.
func explainDistrust(err error, server string) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var foreign x509.HostnameError
	var alert *net.OpError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().After(invalid.Cert.NotAfter):
		return fmt.Sprintf("the certificate of %s has expired on %s\nhint: have it renewed; the server reads it again by itself",
			server, invalid.Cert.NotAfter.UTC().Format(time.DateTime+" MST"))
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s is of an authority that is not known "+
			"here\nhint: name the file of the authority with --ca or TROUPE_CA", server)
	case errors.As(err, &foreign):
		return fmt.Sprintf("the certificate of %s is for others: %v\nhint: use a name that is in it", server, foreign)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s does not speak TLS\nhint: write http:// in place of https://", server)
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Sprintf("%s has ended the handshake (%v)\nhint: if it is about a "+
			"certificate, show another one with --client-cert and --client-key", server, alert.Err)
	}
	return err.Error()
}
