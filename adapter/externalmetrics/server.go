package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	freshness "sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/metrics"
)

// serverName names the server in its OpenAPI documents and its logs.
const serverName = "foresail-external-metrics"

// requestTimeout bounds a request and with it how long a shutdown waits for one: an HPA reads every 15 s, and a pod has
// 30 s to end.
const requestTimeout = 15 * time.Second

// Config is what a server serves.
type Config struct {
	Provider *Provider
	// Ready tells why the server must not be sent requests, nil if it may be. It is the check "data" of /readyz.
	// A cluster without an available server of the API cannot delete namespaces, so it is for the adapter as a whole
	// (what exists has been read), not for the freshness of one PredictedMetric.
	Ready func() error
	// Version of the program, for /version and the OpenAPI documents.
	Version string
}

// Server serves external.metrics.k8s.io over HTTPS. It asks the cluster who its clients are and what they may read.
type Server struct {
	generic  *genericapiserver.GenericAPIServer
	listener net.Listener
}

// NewServer listens, and reads from the cluster how to tell its clients apart. Options must be valid.
func (o *Options) NewServer(c Config) (*Server, error) {
	config, err := o.genericConfig()
	if err != nil {
		return nil, err
	}
	server, err := newServer(config, c)
	if err != nil {
		return nil, errors.Join(err, config.SecureServing.Listener.Close())
	}
	return server, nil
}

func newServer(config *genericapiserver.RecommendedConfig, c Config) (*Server, error) {
	config.RequestTimeout = requestTimeout
	config.EffectiveVersion = newBuild(c.Version)
	config.OpenAPIConfig, config.OpenAPIV3Config = openAPI(c.Version)
	if err := registerFreshness(); err != nil {
		return nil, err
	}
	completed := apiserver.CompletedConfig{CompletedConfig: config.Complete()}
	server, err := completed.New(serverName, nil, c.Provider)
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	if err := addAggregatedDiscovery(server.GenericAPIServer, c.Provider); err != nil {
		return nil, err
	}
	check := healthz.NamedCheck("data", func(*http.Request) error { return c.Ready() })
	if err := server.GenericAPIServer.AddReadyzChecks(check); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	return &Server{generic: server.GenericAPIServer, listener: config.SecureServing.Listener}, nil
}

// registerFreshness makes the library's histogram of the age of served values part of the server's /metrics, which are
// those of the process.
func registerFreshness() error {
	err := freshness.RegisterMetrics(legacyregistry.Register)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		return nil
	}
	return err
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, then lets running requests finish. It is called once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve external metrics on %s: %w", s.Addr(), err)
	}
	return nil
}
