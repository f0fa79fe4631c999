package extender

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/ports"
)

// fault is what a proxy does with a call. It returns false if the call is to be passed on.
type fault func(w http.ResponseWriter, r *http.Request) (answered bool)

// proxy stands between a scheduler and an extender, speaks HTTPS to both, and does to calls what it
// is told to.
type proxy struct {
	t       *testing.T
	address string
	tls     *tls.Config
	backend *httputil.ReverseProxy
	fault   atomic.Pointer[fault]
	conns   atomic.Int64 // that schedulers have opened

	mu     sync.Mutex
	server *http.Server
}

// startProxy passes calls on to an extender until the test ends.
func startProxy(t *testing.T, backend string) *proxy {
	t.Helper()
	cert, key, err := cluster.ServingCertificate("127.0.0.1", "localhost")
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.CA()))
	p := &proxy{t: t, tls: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}}
	p.backend = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: backend})
	p.backend.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	p.backend.ErrorLog = log.New(io.Discard, "", 0)
	address, err := ports.TakeAddress() // it gives it up at times, and takes it again
	require.NoError(t, err)
	p.listen(address)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) listen(address string) {
	p.t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(p.t, err)
	p.address = listener.Addr().String()
	server := &http.Server{
		Handler: p, TLSConfig: p.tls, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				p.conns.Add(1)
			}
		},
	}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "the proxy has ended:", err)
		}
	}()
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close()
}

// inject does something to calls from now on; nil passes them on.
func (p *proxy) inject(f fault) {
	if f == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&f)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := p.fault.Load(); f == nil || !(*f)(w, r) {
		p.backend.ServeHTTP(w, r)
	}
}
