package servertls_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/foresail/foresail/internal/servertls"
	"github.com/foresail/foresail/internal/servertls/servertlstest"
)

// newConfig returns the TLS of a server of the authority that accepts its clients with the names.
func newConfig(t *testing.T, a *servertlstest.Authority, names ...string) *tls.Config {
	t.Helper()
	certificate, key := a.Issue(t, servertlstest.Leaf(x509.ExtKeyUsageServerAuth, "server"))
	pair, err := dynamiccertificates.NewStaticCertKeyContent("server", certificate, key)
	require.NoError(t, err)
	clients, err := dynamiccertificates.NewStaticCAContent("clients", a.PEM)
	require.NoError(t, err)
	config, err := servertls.New(pair, servertls.Clients{Authorities: clients, Names: names})
	require.NoError(t, err)
	return config.Config
}

// handshake returns the error of the server, and whether the client resumed a session.
func handshake(t *testing.T, server, client *tls.Config) (resumed bool, err error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		conn := tls.Server(raw, server)
		defer conn.Close()
		if err = conn.Handshake(); err == nil {
			_, err = conn.Write([]byte{1}) // after the ticket of the session
		}
		done <- err
	}()
	conn, dialErr := tls.Dial("tcp", listener.Addr().String(), client)
	if dialErr == nil {
		_, _ = conn.Read(make([]byte, 1))
		resumed = conn.ConnectionState().DidResume
		conn.Close()
	}
	return resumed, <-done
}

// An authority may sign for other clients too, as one of the cluster does for every namespace.
func TestClientsNeedAConfiguredName(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	server := newConfig(t, ours, "keda-operator", "keda-operator.keda.svc")
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("%d.mallory.svc", i)
	}
	for name, test := range map[string]struct {
		commonName string
		dnsNames   []string
		refused    string // "" if it is accepted
	}{
		"common name":                 {commonName: "keda-operator"},
		"the second DNS name":         {dnsNames: []string{"keda", "keda-operator.keda.svc"}},
		"DNS name, other common name": {"mallory", []string{"keda-operator"}, ""},
		"another common name": {"mallory", nil,
			`is for "mallory": must be for one of "keda-operator", "keda-operator.keda.svc"`},
		"common name, other DNS names": {"keda-operator", []string{"mallory.svc"}, `is for "mallory.svc": `},
		"no name":                      {"", nil, "is for no DNS name and no common name: "},
		"a longer name":                {"keda-operator2", nil, `is for "keda-operator2": `},
		"other case":                   {"KEDA-operator", nil, `is for "KEDA-operator": `},
		"a wildcard":                   {"", []string{"*.keda.svc"}, `is for "*.keda.svc": `},
		"many names": {"", many,
			`is for "0.mallory.svc", "1.mallory.svc", "2.mallory.svc", "3.mallory.svc", "4.mallory.svc" and 995 more: `},
		"a long name": {strings.Repeat("x", 10_000), nil,
			`is for "` + strings.Repeat("x", 100) + `": `},
		"a line break": {"keda-operator\nmallory", nil, `is for "keda-operator\nmallory": `},
	} {
		client := ours.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, test.commonName, test.dnsNames...),
			ours)
		for _, client.MaxVersion = range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			_, err := handshake(t, server, client)
			if test.refused == "" {
				assert.NoError(t, err, name)
			} else {
				assert.ErrorContains(t, err, "the client certificate "+test.refused, name)
			}
		}
	}
}

// A session that was accepted is not resumed once the name is no longer accepted.
func TestResumedSessionsNeedAConfiguredName(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	before, after := newConfig(t, ours, "before"), newConfig(t, ours, "after")
	for _, c := range []*tls.Config{before, after} {
		c.SetSessionTicketKeys([][32]byte{{1}})
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := ours.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, "before"), ours)
		client.MaxVersion, client.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
		for _, want := range []bool{false, true} {
			resumed, err := handshake(t, before, client)
			require.NoError(t, err)
			assert.Equal(t, want, resumed)
		}
		_, err := handshake(t, after, client)
		assert.ErrorContains(t, err, `is for "before": must be for one of "after"`)
	}
}

func TestClientsNeedAValidCertificateOfTheAuthority(t *testing.T) {
	ours, other := servertlstest.NewAuthority(t, "ours"), servertlstest.NewAuthority(t, "other")
	server := newConfig(t, ours, "client")
	valid := servertlstest.Leaf(x509.ExtKeyUsageClientAuth, "client")
	expired, early := *valid, *valid
	expired.NotAfter, early.NotBefore = time.Now().Add(-time.Second), time.Now().Add(time.Minute)
	for name, test := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"none":              {&tls.Config{RootCAs: servertlstest.Pool(ours)}, "client didn't provide a certificate"},
		"another authority": {other.Client(t, valid, ours), "signed by unknown authority"},
		"expired":           {ours.Client(t, &expired, ours), "expired"},
		"not valid yet":     {ours.Client(t, &early, ours), "not yet valid"},
		"of a server": {ours.Client(t, servertlstest.Leaf(x509.ExtKeyUsageServerAuth, "client"), ours),
			"incompatible key usage"},
	} {
		_, err := handshake(t, server, test.client)
		assert.ErrorContains(t, err, test.want, name)
	}
	_, err := handshake(t, server, ours.Client(t, valid, ours))
	assert.NoError(t, err)
}

func TestCheckNames(t *testing.T) {
	assert.NoError(t, servertls.CheckNames([]string{"keda-operator", "system:kube-scheduler"}))
	for _, names := range [][]string{nil, {}, {""}, {"*"}, {"a", "*.b"}, {"a b"}} {
		assert.Error(t, servertls.CheckNames(names), "%q", names)
	}
}
