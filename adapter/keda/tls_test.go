package keda

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/foresail/foresail/adapter/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// authority signs certificates of servers at 127.0.0.1 and of clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	require.NoError(t, err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue returns a certificate with its key.
func (a *authority) issue(t *testing.T, usage x509.ExtKeyUsage) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// client returns what a client of the authority connects with, which trusts servers of all trusted.
func (a *authority) client(t *testing.T, trusted ...*authority) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(a.issue(t, x509.ExtKeyUsageClientAuth))
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: poolOf(trusted...), MinVersion: tls.VersionTLS12}
}

func poolOf(trusted ...*authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range trusted {
		pool.AppendCertsFromPEM(a.pem)
	}
	return pool
}

// files are those of a server.
type files struct{ cert, key, clients string }

func newFiles(t *testing.T, server *authority, clients ...*authority) files {
	t.Helper()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	f.serve(t, server)
	f.admit(t, clients...)
	return f
}

// serve replaces the certificate of the server.
func (f files) serve(t *testing.T, a *authority) {
	t.Helper()
	certificate, key := a.issue(t, x509.ExtKeyUsageServerAuth)
	replace(t, f.key, key)
	replace(t, f.cert, certificate)
}

// admit replaces the authorities of clients.
func (f files) admit(t *testing.T, clients ...*authority) {
	t.Helper()
	var all []byte
	for _, a := range clients {
		all = append(all, a.pem...)
	}
	replace(t, f.clients, all)
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+"~", content, 0o600))
	require.NoError(t, os.Rename(path+"~", path))
}

func (f files) options() Options {
	return Options{Address: "127.0.0.1:0", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.clients}
}

// listen runs a Server of options.
func listen(t *testing.T, o Options) *Server {
	t.Helper()
	s, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	server, err := NewServer(o, s, allKnown)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return server
}

// ask makes a call over a connection of its own.
func ask(t *testing.T, server *Server, c credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(server.Addr().String(), grpc.WithTransportCredentials(c))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = externalscaler.NewExternalScalerClient(conn).GetMetricSpec(ctx, refTo())
	return err
}

func TestClientsAreAuthenticated(t *testing.T) {
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	server := listen(t, newFiles(t, ours, ours).options())
	require.NoError(t, ask(t, server, credentials.NewTLS(ours.client(t, ours))))

	serverPair, err := tls.X509KeyPair(ours.issue(t, x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	for name, c := range map[string]credentials.TransportCredentials{
		"no certificate":          credentials.NewTLS(&tls.Config{RootCAs: poolOf(ours)}),
		"of another authority":    credentials.NewTLS(other.client(t, ours)),
		"certificate of a server": credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{serverPair}, RootCAs: poolOf(ours)}),
		"trusts another server":   credentials.NewTLS(ours.client(t, other)),
		"TLS 1.1":                 credentials.NewTLS(&tls.Config{RootCAs: poolOf(ours), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}),
		"no TLS":                  insecure.NewCredentials(),
	} {
		before := testutil.ToFloat64(server.tlsFailures)
		assert.Equal(t, codes.Unavailable, status.Code(ask(t, server, c)), name)
		assert.Eventually(t, func() bool { return testutil.ToFloat64(server.tlsFailures) > before }, patience, time.Millisecond, name)
	}
}

// TestCertificatesAreReplacedWithoutAFailedCall replaces the authority, as KEDA's documentation asks for it: both are trusted for a
// while, with clients that connect all the time.
func TestCertificatesAreReplacedWithoutAFailedCall(t *testing.T) {
	before, after := newAuthority(t, "before"), newAuthority(t, "after")
	f := newFiles(t, before, before)
	server := listen(t, f.options())

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var calls, failed atomic.Int64
	config := before.client(t, before, after)
	conn, err := grpc.NewClient(server.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	require.NoError(t, err)
	defer conn.Close()
	held := externalscaler.NewExternalScalerClient(conn)
	for _, call := range []func() error{
		func() error { return ask(t, server, credentials.NewTLS(config)) },
		func() error { _, err := held.IsActive(t.Context(), refTo()); return err },
	} {
		load.Go(func() {
			for ctx.Err() == nil {
				if err := call(); !assert.NoError(t, err) {
					failed.Add(1)
					return
				}
				calls.Add(1)
			}
		})
	}
	renewed := credentials.NewTLS(after.client(t, before, after))
	require.Error(t, ask(t, server, renewed))
	f.admit(t, before, after)
	require.Eventually(t, func() bool { return ask(t, server, renewed) == nil }, patience, 10*time.Millisecond)
	f.serve(t, after)
	onlyAfter := credentials.NewTLS(after.client(t, after))
	require.Eventually(t, func() bool { return ask(t, server, onlyAfter) == nil }, patience, 10*time.Millisecond)
	stop()
	load.Wait()
	assert.Zero(t, failed.Load())
	assert.Positive(t, calls.Load())

	f.admit(t, after)
	require.Eventually(t, func() bool { return ask(t, server, credentials.NewTLS(config)) != nil }, patience, 10*time.Millisecond)
}

func TestTLSWithoutClientCertificates(t *testing.T) {
	ours := newAuthority(t, "ours")
	o := newFiles(t, ours, ours).options()
	o.ClientCAFile = ""
	require.NoError(t, ask(t, listen(t, o), credentials.NewTLS(&tls.Config{RootCAs: poolOf(ours)})))
}

func TestStrangersNeedAnOption(t *testing.T) {
	ours := newAuthority(t, "ours")
	f := newFiles(t, ours, ours)
	secured := f.options()
	for name, test := range map[string]struct {
		options Options
		want    string // the option that is wrong
	}{
		"loopback":                     {Options{Address: "127.0.0.1:9600"}, ""},
		"all addresses":                {Options{Address: ":9600"}, "Address"},
		"an address of a pod":          {Options{Address: "10.0.0.1:9600"}, "Address"},
		"TLS alone":                    {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key}, "Address"},
		"authorities without TLS":      {Options{Address: ":9600", ClientCAFile: f.clients}, "ClientCAFile"},
		"mutual TLS":                   {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.clients}, ""},
		"anonymous":                    {Options{Address: ":9600", AllowAnonymous: true}, ""},
		"no port":                      {Options{Address: "127.0.0.1"}, "Address"},
		"a port that is none":          {Options{Address: "127.0.0.1:70000"}, "Address"},
		"a key alone":                  {Options{Address: "127.0.0.1:9600", KeyFile: f.key}, "CertFile"},
		"a certificate alone":          {Options{Address: "127.0.0.1:9600", CertFile: f.cert}, "KeyFile"},
		"the key for a certificate":    {Options{Address: "127.0.0.1:9600", CertFile: f.key, KeyFile: f.key}, "CertFile"},
		"a key for the authorities":    {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.key}, "ClientCAFile"},
		"no such file of authorities":  {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.key + "~"}, "ClientCAFile"},
		"mutual TLS on loopback, fine": {secured, ""},
	} {
		err := test.options.Validate()
		if test.want == "" {
			assert.NoError(t, err, name)
			continue
		}
		wrong := &OptionError{}
		require.ErrorAs(t, err, &wrong, name)
		assert.Equal(t, test.want, wrong.Option, name)
		_, err = NewServer(test.options, nil, nil)
		assert.ErrorAs(t, err, &wrong, name)
	}
	server := listen(t, Options{Address: "127.0.0.1:0"})
	_, err := NewServer(Options{Address: server.Addr().String()}, nil, nil)
	assert.ErrorContains(t, err, "must be one to listen on")
}
