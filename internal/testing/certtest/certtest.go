// Package certtest makes certificate authorities and certificates for tests, as PEM files.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority is a certificate authority.
type Authority struct {
	File string // file with the own certificate as PEM
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair holds the file names of a certificate and its key.
type Pair struct{ Cert, Key string }

// New returns a new authority.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), key: newKey(t)}
	der := signCert(t, certTemplate("a test's authority"), nil, a.key, a.key)
	var err error
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue returns a certificate for this host, for servers and clients.
func (a *Authority) Issue(t testing.TB) Pair {
	t.Helper()
	return a.IssueUntil(t, time.Now().Add(time.Hour))
}

// IssueUntil is like Issue, with an expiry time.
func (a *Authority) IssueUntil(t testing.TB, end time.Time) Pair {
	t.Helper()
	dir := t.TempDir()
	p := Pair{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	a.Renew(t, p, end)
	return p
}

// Renew replaces the files of a pair by a new certificate with a new key.
func (a *Authority) Renew(t testing.TB, p Pair, end time.Time) {
	t.Helper()
	key := newKey(t)
	leaf := certTemplate("a test's certificate")
	leaf.IsCA, leaf.NotAfter = false, end
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature,
		[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	writePEM(t, p.Cert, "CERTIFICATE", signCert(t, leaf, a.cert, key, a.key))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	writePEM(t, p.Key, "PRIVATE KEY", der)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func certTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
}

// signCert signs the certificate of a key; it is self-signed if parent is nil.
func signCert(t testing.TB, c, parent *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &of.PublicKey, by)
	require.NoError(t, err)
	return der
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
