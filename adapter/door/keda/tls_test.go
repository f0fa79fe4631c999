package keda

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
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
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/internal/servertls/servertlstest"
)

// clientOf returns what KEDA connects with, which has a certificate of the authority and trusts servers of all trusted.
func clientOf(t *testing.T, a *servertlstest.Authority,
	trusted ...*servertlstest.Authority) credentials.TransportCredentials {
	t.Helper()
	return credentials.NewTLS(a.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, DefaultClientName),
		trusted...))
}

// files are those of a server.
type files struct{ cert, key, clients string }

func newFiles(t *testing.T, server *servertlstest.Authority, clients ...*servertlstest.Authority) files {
	t.Helper()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	f.serve(t, server)
	f.admit(t, clients...)
	return f
}

// serve replaces the certificate of the server.
func (f files) serve(t *testing.T, a *servertlstest.Authority) {
	t.Helper()
	certificate, key := a.Issue(t, servertlstest.Leaf(x509.ExtKeyUsageServerAuth, "foresail"))
	replace(t, f.key, key)
	replace(t, f.cert, certificate)
}

// admit replaces the authorities of clients.
func (f files) admit(t *testing.T, clients ...*servertlstest.Authority) {
	t.Helper()
	var all []byte
	for _, a := range clients {
		all = append(all, a.PEM...)
	}
	replace(t, f.clients, all)
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+"~", content, 0o600))
	require.NoError(t, os.Rename(path+"~", path))
}

func (f files) options() Options {
	return Options{
		Address: "127.0.0.1:0", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.clients,
		ClientNames: []string{DefaultClientName},
	}
}

// listen runs a Server of options.
func listen(t *testing.T, o Options) *Server {
	t.Helper()
	return listenWith(t.Context(), t, o)
}

func listenWith(ctx context.Context, t *testing.T, o Options) *Server {
	t.Helper()
	s, _ := newScaler(servingtest.Healthy("checkout", "checkout"))
	server, err := NewServer(o, s, allKnown)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
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
	ours, other := servertlstest.NewAuthority(t, "ours"), servertlstest.NewAuthority(t, "other")
	server := listen(t, newFiles(t, ours, ours).options())
	require.NoError(t, ask(t, server, clientOf(t, ours, ours)))

	keda := servertlstest.Leaf(x509.ExtKeyUsageClientAuth, DefaultClientName)
	expired := *keda
	expired.NotAfter = time.Now().Add(-time.Minute)
	mallory := servertlstest.Leaf(x509.ExtKeyUsageClientAuth, "mallory")
	ofServer := servertlstest.Leaf(x509.ExtKeyUsageServerAuth, DefaultClientName)
	for name, c := range map[string]credentials.TransportCredentials{
		"no certificate":          credentials.NewTLS(&tls.Config{RootCAs: servertlstest.Pool(ours)}),
		"of another authority":    clientOf(t, other, ours),
		"with another name":       credentials.NewTLS(ours.Client(t, mallory, ours)),
		"certificate of a server": credentials.NewTLS(ours.Client(t, ofServer, ours)),
		"expired":                 credentials.NewTLS(ours.Client(t, &expired, ours)),
		"trusts another server":   clientOf(t, ours, other),
		"TLS 1.1": credentials.NewTLS(&tls.Config{RootCAs: servertlstest.Pool(ours),
			MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}),
		"no TLS": insecure.NewCredentials(),
	} {
		before := testutil.ToFloat64(server.tlsFailures)
		assert.Equal(t, codes.Unavailable, status.Code(ask(t, server, c)), name)
		assert.Eventually(t, func() bool { return testutil.ToFloat64(server.tlsFailures) > before },
			patience, time.Millisecond, name)
	}
}

// A client only sees that the connection is closed: the log has the names.
func TestRefusedNamesAreLogged(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	server := listenWith(klog.NewContext(t.Context(), log), t, newFiles(t, ours, ours).options())
	mallory := servertlstest.Leaf(x509.ExtKeyUsageClientAuth, "mallory")
	for range 2 {
		require.Error(t, ask(t, server, credentials.NewTLS(ours.Client(t, mallory, ours))))
	}
	const names = `is for \"mallory\": must be for one of \"keda-operator\"`
	lines := log.GetSink().(ktesting.Underlier).GetBuffer()
	require.Eventually(t, func() bool {
		return testutil.ToFloat64(server.tlsFailures) >= 2 && strings.Contains(lines.String(), names)
	}, patience, time.Millisecond)
	assert.Equal(t, 1, strings.Count(lines.String(), names), lines)
}

// TestCertificatesAreReplacedWithoutAFailedCall replaces the authority, as KEDA's documentation
// asks for it: both are trusted for a while, with clients that connect all the time.
func TestCertificatesAreReplacedWithoutAFailedCall(t *testing.T) {
	before, after := servertlstest.NewAuthority(t, "before"), servertlstest.NewAuthority(t, "after")
	f := newFiles(t, before, before)
	server := listen(t, f.options())

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var calls, failed atomic.Int64
	config := clientOf(t, before, before, after)
	conn, err := grpc.NewClient(server.Addr().String(), grpc.WithTransportCredentials(config))
	require.NoError(t, err)
	defer conn.Close()
	held := externalscaler.NewExternalScalerClient(conn)
	for _, call := range []func() error{
		func() error { return ask(t, server, config) },
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
	renewed := clientOf(t, after, before, after)
	require.Error(t, ask(t, server, renewed))
	f.admit(t, before, after)
	require.Eventually(t, func() bool { return ask(t, server, renewed) == nil }, patience, 10*time.Millisecond)
	f.serve(t, after)
	onlyAfter := clientOf(t, after, after)
	require.Eventually(t, func() bool { return ask(t, server, onlyAfter) == nil }, patience, 10*time.Millisecond)
	stop()
	load.Wait()
	assert.Zero(t, failed.Load())
	assert.Positive(t, calls.Load())

	f.admit(t, after)
	require.Eventually(t, func() bool { return ask(t, server, config) != nil }, patience, 10*time.Millisecond)
}

func TestTLSWithoutClientCertificates(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	o := newFiles(t, ours, ours).options()
	o.ClientCAFile = ""
	require.NoError(t, ask(t, listen(t, o), credentials.NewTLS(&tls.Config{RootCAs: servertlstest.Pool(ours)})))
}

func withNames(o Options, names ...string) Options {
	o.Address, o.ClientNames = ":9600", names
	return o
}

func TestStrangersNeedAnOption(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	f := newFiles(t, ours, ours)
	secured := f.options()
	for name, test := range map[string]struct {
		options Options
		want    string // the option that is wrong
	}{
		"loopback":                  {Options{Address: "127.0.0.1:9600"}, ""},
		"all addresses":             {Options{Address: ":9600"}, "Address"},
		"an address of a pod":       {Options{Address: "10.0.0.1:9600"}, "Address"},
		"TLS alone":                 {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key}, "Address"},
		"authorities without TLS":   {Options{Address: ":9600", ClientCAFile: f.clients}, "ClientCAFile"},
		"mutual TLS":                {withNames(secured, DefaultClientName), ""},
		"no names":                  {withNames(secured), "ClientNames"},
		"a wildcard":                {withNames(secured, "*.keda.svc"), "ClientNames"},
		"anonymous":                 {Options{Address: ":9600", AllowAnonymous: true}, ""},
		"no port":                   {Options{Address: "127.0.0.1"}, "Address"},
		"a port that is none":       {Options{Address: "127.0.0.1:70000"}, "Address"},
		"a key alone":               {Options{Address: "127.0.0.1:9600", KeyFile: f.key}, "CertFile"},
		"a certificate alone":       {Options{Address: "127.0.0.1:9600", CertFile: f.cert}, "KeyFile"},
		"the key for a certificate": {Options{Address: "127.0.0.1:9600", CertFile: f.key, KeyFile: f.key}, "CertFile"},
		"a key for the authorities": {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.key},
			"ClientCAFile"},
		"no such file of authorities": {Options{Address: ":9600", CertFile: f.cert, KeyFile: f.key,
			ClientCAFile: f.key + "~"}, "ClientCAFile"},
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
