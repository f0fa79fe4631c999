package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"
)

func parseLeaf(t *testing.T, pair KeyPair) *x509.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	require.NoError(t, err)
	return leaf
}

func TestCertificates(t *testing.T) {
	ca, err := NewAuthority("ca")
	require.NoError(t, err)
	other, err := NewAuthority("other")
	require.NoError(t, err)
	trusted, foreign := x509.NewCertPool(), x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(ca.Cert))
	require.True(t, foreign.AppendCertsFromPEM(other.Cert))

	pair, err := ca.Server("metrics.default.svc", "127.0.0.1")
	require.NoError(t, err)
	server := parseLeaf(t, pair)
	for _, name := range []string{"metrics.default.svc", "127.0.0.1"} {
		_, err = server.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name})
		require.NoError(t, err)
	}
	_, err = server.Verify(x509.VerifyOptions{Roots: trusted, DNSName: "elsewhere"})
	require.Error(t, err)
	_, err = server.Verify(x509.VerifyOptions{Roots: foreign, DNSName: "127.0.0.1"})
	require.Error(t, err)

	pair, err = ca.Client("jane", "admins", "devs")
	require.NoError(t, err)
	client := parseLeaf(t, pair)
	require.Equal(t, "jane", client.Subject.CommonName)
	require.ElementsMatch(t, []string{"admins", "devs"}, client.Subject.Organization)
	_, err = client.Verify(x509.VerifyOptions{Roots: trusted,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	_, err = client.Verify(x509.VerifyOptions{Roots: trusted,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	require.Error(t, err)
}
