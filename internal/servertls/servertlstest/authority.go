// Package servertlstest makes certificates for tests of servers at 127.0.0.1.
package servertlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates.
type Authority struct {
	PEM         []byte // its own certificate
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority that is valid for an hour.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	require.NoError(t, err)
	return &Authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), certificate, key}
}

// Leaf returns the content of a certificate that is valid for an hour.
func Leaf(usage x509.ExtKeyUsage, commonName string, dnsNames ...string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName}, DNSNames: dnsNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// Issue returns a certificate and its key in PEM.
func (a *Authority) Issue(t testing.TB, content *x509.Certificate) (certificate, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, content, a.certificate, own.Public(), a.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// Client returns the TLS of a client that presents such a certificate, whichever authorities the
// server names, and trusts servers of all trusted.
func (a *Authority) Client(t testing.TB, content *x509.Certificate, trusted ...*Authority) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(t, content))
	require.NoError(t, err)
	present := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return &tls.Config{GetClientCertificate: present, RootCAs: Pool(trusted...), MinVersion: tls.VersionTLS12}
}

// Pool returns the authorities as a pool.
func Pool(authorities ...*Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AppendCertsFromPEM(a.PEM)
	}
	return pool
}
