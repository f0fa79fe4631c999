package forward

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// secured is an adapter that serves HTTPS by a certificate of an authority of its own.
type secured struct {
	*httptest.Server
	authority []byte
	token     atomic.Value // the header that was last sent
}

func serveTLS(t *testing.T) *secured {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("second", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	s := &secured{authority: cert}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.token.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNoContent)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *secured) host() string { return s.Listener.Addr().String() }

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestAuthoritiesAreReadAgain(t *testing.T) {
	s, other := serveTLS(t), serveTLS(t)
	caFile := write(t, filepath.Join(t.TempDir(), "ca.crt"), other.authority)
	token := write(t, filepath.Join(t.TempDir(), "token"), []byte("foresail\n"))
	f, err := New(Options{
		Host: s.host(), CAFile: caFile, Cluster: &rest.Config{BearerTokenFile: token},
		Registerer: prometheus.NewRegistry(), Now: time.Now,
	})
	require.NoError(t, err)
	for _, c := range []struct {
		content []byte
		problem string // "": none
	}{
		{other.authority, "x509: certificate signed by unknown authority"},
		{append(other.authority, s.authority...), ""},
		{[]byte("none"), "read the authority of its certificate: " + caFile + " has no certificate in PEM"},
		{s.authority, ""},
	} {
		write(t, caFile, c.content)
		s.CloseClientConnections() // connections that there are need no check
		w := read(f, newRead(t.Context(), queue, "Authorization", "Bearer caller"))
		if c.problem == "" {
			assert.Equal(t, http.StatusNoContent, w.Code)
			assert.Equal(t, "Bearer foresail", s.token.Load())
			continue
		}
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Contains(t, w.Body.String(), c.problem)
	}
	require.NoError(t, os.Remove(caFile))
	s.CloseClientConnections()
	assert.Contains(t, read(f, newRead(t.Context(), queue)).Body.String(), "no such file")
}

func TestVerificationIsLeftOutOnlyByOption(t *testing.T) {
	s := serveTLS(t)
	f, err := New(Options{Host: s.host(), InsecureSkipTLSVerify: true, Cluster: &rest.Config{BearerToken: "foresail"},
		Registerer: prometheus.NewRegistry(), Now: time.Now})
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, read(f, newRead(t.Context(), queue)).Code)
	assert.Equal(t, "Bearer foresail", s.token.Load())
}
