package extender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/internal/httpserve"
	"github.com/foresail/foresail/internal/servertls"
)

// Timeouts for schedulers. A scheduler itself gives up after its httpTimeout, 200 ms in the recommended configuration.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = 10 * time.Minute // an idle scheduler keeps its connection
)

// DefaultClientName is the name that the manifests give the scheduler's certificate.
const DefaultClientName = "foresail-scheduler"

// ServerOptions have the address and the certificates of a Server.
type ServerOptions struct {
	Address string // host:port to listen on; the host may be left out, port 0 is any

	// CertFile and KeyFile hold the certificate of the server in PEM, and are read again when they change. Without
	// them the server signs a certificate itself at start, for the names of this host.
	CertFile, KeyFile string

	// ClientCAFile holds the authorities of the schedulers' certificates in PEM, and is read again when it
	// changes. Without it the server answers every client.
	ClientCAFile string
	// ClientNames are the names that the schedulers' certificates may have: a DNS name, or the common name of one
	// without a DNS name.
	ClientNames []string

	Registry prometheus.Registerer // nil: failed connections are not counted
}

// Server serves a handler over HTTPS, with HTTP/2 where the client supports it.
type Server struct {
	http     *http.Server
	listener net.Listener
	tls      *servertls.Config
	failures *failures
}

// NewServer listens. The error is an *OptionError if o is wrong, or that of the registry.
func NewServer(o ServerOptions, handler http.Handler) (*Server, error) {
	secured, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	failures := newFailures(time.Now)
	if o.Registry != nil {
		if err := o.Registry.Register(failures.count); err != nil {
			return nil, fmt.Errorf("server of the extender: %w", err)
		}
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, &OptionError{"Address", o.Address, "one to listen on", err}
	}
	return &Server{
		listener: listener,
		tls:      secured,
		failures: failures,
		http: &http.Server{
			Handler:           handler,
			TLSConfig:         secured.Config,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    64 << 10,
			ConnContext:       withConnection,
			ErrorLog:          stdlog.New(failures, "", 0),
			HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: pooledBody,
				MaxReceiveBufferPerConnection: 4 * pooledBody},
		},
	}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, then takes no new requests and lets those under way finish. It is called
// once. Requests have the logger of the context.
func (s *Server) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	s.failures.log = log
	s.http.BaseContext = func(net.Listener) context.Context { return klog.NewContext(context.Background(), log) }
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return s.tls.Run(ctx) })
	parts.Go(func() error {
		if err := s.http.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the scheduler extender on %s: %w", s.Addr(), err)
		}
		return nil
	})
	parts.Go(func() error { httpserve.StopWith(ctx, s.http, s.listener); return nil })
	return parts.Wait()
}

// tlsConfig reads the files.
func (o ServerOptions) tlsConfig() (*servertls.Config, error) {
	serving, err := o.serving()
	if err != nil {
		return nil, err
	}
	clients := servertls.Clients{Names: o.ClientNames}
	if o.ClientCAFile != "" {
		if err := servertls.CheckNames(o.ClientNames); err != nil {
			names := strings.Join(o.ClientNames, ",")
			const accepted = "the names of the schedulers' certificates, such as " + DefaultClientName
			return nil, &OptionError{"ClientNames", names, accepted, err}
		}
		const purpose = "clients of the scheduler extender"
		clients.Authorities, err = dynamiccertificates.NewDynamicCAContentFromFile(purpose, o.ClientCAFile)
		if err != nil {
			return nil, &OptionError{"ClientCAFile", o.ClientCAFile, "a file with certificates in PEM", err}
		}
	}
	config, err := servertls.New(serving, clients, "h2", "http/1.1")
	if err != nil {
		return nil, &OptionError{"CertFile", o.CertFile, "a certificate in PEM, the key of which is in KeyFile", err}
	}
	return config, nil
}

// serving returns the certificate of the server.
func (o ServerOptions) serving() (dynamiccertificates.CertKeyContentProvider, error) {
	const name = "scheduler extender"
	switch {
	case o.CertFile == "" && o.KeyFile == "":
		certificate, key, err := selfSigned()
		if err != nil {
			return nil, err
		}
		return dynamiccertificates.NewStaticCertKeyContent(name, certificate, key)
	case o.CertFile == "":
		return nil, &OptionError{"CertFile", "", "the certificate of KeyFile, or neither", nil}
	case o.KeyFile == "":
		return nil, &OptionError{"KeyFile", "", "the key of CertFile, or neither", nil}
	}
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles(name, o.CertFile, o.KeyFile)
	if err != nil {
		return nil, &OptionError{"CertFile", o.CertFile, "a certificate in PEM, the key of which is in KeyFile", err}
	}
	return content, nil
}

// selfSigned makes a certificate for a year. A scheduler without a caFile accepts any.
func selfSigned() (certificate, key []byte, err error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	certificate, key, err = cert.GenerateSelfSignedCertKey(host,
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, []string{"localhost"})
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate for the scheduler extender: %w", err)
	}
	return certificate, key, nil
}

// failures receives the log lines of net/http about connections. A scheduler with an untrusted certificate, or
// one that does not trust ours, goes on without the extender: only these lines show it.
type failures struct {
	log   klog.Logger // set before anything is served
	now   func() time.Time
	count prometheus.Counter

	mu     sync.Mutex
	warned time.Time // when it was last warned
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, count: prometheus.NewCounter(prometheus.CounterOpts{
		Name: servertls.FailuresName, Help: servertls.FailuresHelp, ConstLabels: prometheus.Labels{"door": "extender"},
	})}
}

// Write implements io.Writer.
func (f *failures) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if !strings.Contains(text, "TLS handshake error") || strings.HasSuffix(text, ": EOF") { // as of a probe
		f.log.V(4).Info("Serving the scheduler extender", "err", text)
		return len(line), nil
	}
	f.count.Inc()
	if f.first() {
		f.log.Info("A connection to the scheduler extender failed: the client has no certificate of the required authority and name, "+
			"or does not trust ours", "err", text)
	}
	return len(line), nil
}

// first reports whether a minute has passed since it last returned true.
func (f *failures) first() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if !f.warned.IsZero() && now.Sub(f.warned) < time.Minute {
		return false
	}
	f.warned = now
	return true
}
