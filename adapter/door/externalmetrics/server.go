package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	freshness "sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// serverName names the server in its OpenAPI documents and its logs.
const serverName = "foresail-external-metrics"

// requestTimeout bounds a request, and so how long a shutdown waits for it: an HPA reads every 15
// s, and a pod has 30 s to terminate.
const requestTimeout = 15 * time.Second

// Config holds the metrics that a server serves.
type Config struct {
	Provider *Provider
	// Custom has the metrics of custom.metrics.k8s.io, which this server then serves too. nil serves none.
	Custom provider.CustomMetricsProvider
	// Ready returns why the server must not receive requests yet, nil if it may. It is the check "data" of /readyz. A
	// cluster in which no server of the API is available cannot delete namespaces, so Ready is about the adapter as a
	// whole (it has read what exists), not about the freshness of one PredictedMetric.
	Ready func() error
	// Certificate is the serving certificate, which may change at any time. nil stands for that of the options.
	Certificate dynamiccertificates.CertKeyContentProvider
	// Version of the program, for /version and the OpenAPI documents.
	Version string
	// Second has the metrics that are not Foresail's. nil is none.
	Second Second
}

// Second is another adapter, whose metrics this server serves too.
type Second interface {
	// Handler answers reads of metrics that are not Foresail's, and leaves everything else to next.
	Handler(next http.Handler) http.Handler
	// Metrics returns the names that are known at the moment, each once and without Foresail's.
	Metrics() []string
	// Run keeps them up to date, and calls changed after each change, until the context ends.
	Run(ctx context.Context, changed func())
}

// none is no second adapter.
type none struct{}

func (none) Handler(next http.Handler) http.Handler { return next }
func (none) Metrics() []string                      { return nil }
func (none) Run(context.Context, func())            {}

// Server serves external.metrics.k8s.io, and custom.metrics.k8s.io if there is a provider, over
// HTTPS. The cluster authenticates and authorizes its clients.
type Server struct {
	generic  *genericapiserver.GenericAPIServer
	listener net.Listener
	metrics  listing
}

// NewServer listens, and reads from the cluster how to authenticate clients. Options must be valid.
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
	if c.Certificate != nil {
		config.SecureServing.Cert = c.Certificate
	}
	config.RequestTimeout = requestTimeout
	config.EffectiveVersion = newBuild(c.Version)
	config.OpenAPIConfig, config.OpenAPIV3Config = openAPIConfigs(c.Version, c.Custom != nil)
	if err := registerFreshness(); err != nil {
		return nil, err
	}
	if c.Second == nil {
		c.Second = none{}
	}
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		// In front of it, the chain authenticates, authorizes and limits.
		return genericapiserver.DefaultBuildHandlerChain(c.Second.Handler(handler), config)
	}
	metrics := listing{Provider: c.Provider, second: c.Second}
	completed := apiserver.CompletedConfig{CompletedConfig: config.Complete()}
	server, err := completed.New(serverName, c.Custom, metrics)
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	if err := addAggregatedDiscovery(server.GenericAPIServer, metrics); err != nil {
		return nil, err
	}
	if c.Custom != nil {
		if err := addCustomDiscovery(server.GenericAPIServer, c.Custom); err != nil {
			return nil, err
		}
	}
	check := healthz.NamedCheck("data", func(*http.Request) error { return c.Ready() })
	if err := server.GenericAPIServer.AddReadyzChecks(check); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	return &Server{generic: server.GenericAPIServer, listener: config.SecureServing.Listener, metrics: metrics}, nil
}

// registerFreshness adds the library's histogram of the age of served values to /metrics of the process.
func registerFreshness() error {
	err := freshness.RegisterMetrics(legacyregistry.Register)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		return nil
	}
	return err
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until the context ends, then lets running requests finish. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	var second sync.WaitGroup
	defer second.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	second.Go(func() { s.metrics.second.Run(ctx, func() { s.rediscover(ctx) }) })
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve external metrics on %s: %w", s.Addr(), err)
	}
	return nil
}

// rediscover lists the metrics again if that is not done for each request.
func (s *Server) rediscover(ctx context.Context) {
	if err := addAggregatedDiscovery(s.generic, s.metrics); err != nil {
		klog.FromContext(ctx).Error(err, "The metrics of the second adapter are missing in the aggregated discovery")
	}
}
