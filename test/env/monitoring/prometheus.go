package monitoring

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// PrometheusOptions say how a Prometheus differs from a server that scrapes every pod once a second.
type PrometheusOptions struct {
	// Name is that of the log and of the folder with the data; "" for "prometheus". Two on one
	// cluster need two.
	Name string
	// Binaries are what runs; the zero value stands for those of [Build].
	Binaries Binaries
	// Progress receives lines about the build, if there is one; nil for none.
	Progress io.Writer

	// Selector is a label selector of the pods to scrape, such as "app=web"; "" for all.
	Selector string
	// Targets are exporters beside the pods, each as host:port, read at /metrics. What they say
	// keeps its labels.
	Targets []string
	// ScrapeInterval is the time from one scrape of a pod, or target, to the next; 0 for 1 s.
	ScrapeInterval time.Duration
	// ScrapeTimeout is at most the interval; 0 for as long.
	ScrapeTimeout time.Duration

	// Port is the one of 127.0.0.1 that it listens on; 0 for any that is free.
	Port int

	// Agent has it only send what it scrapes, and answer no queries.
	Agent bool
	// RemoteWrite is where else samples are sent.
	RemoteWrite []RemoteWrite

	// History is how old samples may be that [Prometheus.Write] adds; 0: it takes none.
	History time.Duration

	// BasicAuth is asked of its clients if given.
	BasicAuth *BasicAuth
	// TLS has it serve HTTPS, with a certificate signed by the cluster's CA for 127.0.0.1 and localhost.
	TLS bool

	// ExtraArgs are further flags, such as "--scrape.discovery-reload-interval=1s": by default up
	// to 10 s pass until a pod that becomes ready is scraped, and until one that is gone is not.
	ExtraArgs []string
}

// RemoteWrite is a receiver of samples.
type RemoteWrite struct {
	URL string
	// Version of the protocol: 1 or 2; 0 for 1, as Prometheus has it.
	Version int
	// BatchSendDeadline is how long a sample waits at most for others to be sent with; 0 for
	// Prometheus' own 5 s.
	BatchSendDeadline time.Duration
	BasicAuth         *BasicAuth // nil: none
	CAFile            string     // of the receiver's certificate, for https; "" for the system's
}

// BasicAuth is a user's name and password.
type BasicAuth struct {
	Username, Password string
}

// Prometheus is a Prometheus server or agent. Its methods may be called from any goroutine.
type Prometheus struct {
	*server
	// URL is where it is reached, such as http://127.0.0.1:23456.
	URL    string
	client *http.Client
}

//go:embed prometheus.yaml
var prometheusManifest []byte

// StartPrometheus runs a Prometheus that finds pods by the API server of a cluster. It builds it
// first if need be, and does not wait for it to be ready. It ends with ctx at the latest, and is to
// be stopped before the cluster is.
func StartPrometheus(ctx context.Context, cluster *controlplane.Cluster, options PrometheusOptions) (*Prometheus,
	error) {
	options.setDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	p, err := newPrometheus(ctx, cluster, options)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", options.Name, err)
	}
	return p, p.run(ctx)
}

func (o *PrometheusOptions) setDefaults() {
	if o.Name == "" {
		o.Name = "prometheus"
	}
	if o.ScrapeInterval == 0 {
		o.ScrapeInterval = time.Second
	}
	if o.ScrapeTimeout == 0 {
		o.ScrapeTimeout = o.ScrapeInterval
	}
}

func (o *PrometheusOptions) validate() error {
	switch {
	case o.ScrapeInterval < 0:
		return fmt.Errorf("PrometheusOptions.ScrapeInterval: %s: want more than 0", o.ScrapeInterval)
	case o.ScrapeTimeout < 0 || o.ScrapeTimeout > o.ScrapeInterval:
		return fmt.Errorf("PrometheusOptions.ScrapeTimeout: %s: want more than 0 and at most the interval, %s",
			o.ScrapeTimeout, o.ScrapeInterval)
	case o.History < 0 || o.History > 0 && o.Agent:
		return fmt.Errorf("PrometheusOptions.History: %s: want 0 or more, and 0 of an agent", o.History)
	case o.Agent && len(o.RemoteWrite) == 0:
		return fmt.Errorf("PrometheusOptions.RemoteWrite: none: an agent wants at least one")
	}
	for i, write := range o.RemoteWrite {
		if err := write.validate(fmt.Sprintf("PrometheusOptions.RemoteWrite[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *RemoteWrite) validate(field string) error {
	target, err := url.Parse(w.URL)
	if err != nil || target.Host == "" {
		return fmt.Errorf("%s.URL: %q: want one such as http://127.0.0.1:8080/api/v1/write", field, w.URL)
	}
	if w.Version < 0 || w.Version > 2 {
		return fmt.Errorf("%s.Version: %d: want 1 or 2", field, w.Version)
	}
	return nil
}

func newPrometheus(ctx context.Context, cluster *controlplane.Cluster, options PrometheusOptions) (*Prometheus, error) {
	binaries, err := options.Binaries.orBuild(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	if _, err := cluster.Apply(ctx, prometheusManifest); err != nil {
		return nil, err
	}
	kubeconfig, err := cluster.KubeconfigForServiceAccount(ctx, "monitoring", "prometheus")
	if err != nil {
		return nil, err
	}
	home := filepath.Join(cluster.Dir(), options.Name)
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	web, client, err := options.access(cluster)
	if err != nil {
		return nil, err
	}
	if err := options.writeFiles(home, kubeconfig, web); err != nil {
		return nil, err
	}
	port := options.Port
	if port == 0 {
		if port, err = ports.Take(); err != nil {
			return nil, err
		}
	}
	p := &Prometheus{
		server: &server{name: options.Name, binary: binaries.path(prometheusBinary), home: home,
			args: options.arguments(binaries, home, port)},
		URL: "http://" + ports.Loopback(port),
	}
	if options.TLS {
		p.URL = "https://" + ports.Loopback(port)
	}
	p.client, err = config.NewClientFromConfig(client, options.Name)
	return p, err
}

// access returns how the server lets clients in, and what a client needs to be let in.
func (o *PrometheusOptions) access(cluster *controlplane.Cluster) (web webFile, client config.HTTPClientConfig,
	err error) {
	client.FollowRedirects = true
	if o.BasicAuth != nil {
		web.auth = o.BasicAuth
		client.BasicAuth = &config.BasicAuth{Username: o.BasicAuth.Username,
			Password: config.Secret(o.BasicAuth.Password)}
	}
	if o.TLS {
		client.TLSConfig.CA = string(cluster.CA())
		web.cert, web.key, err = cluster.ServingCertificate("127.0.0.1", "localhost")
	}
	return web, client, err
}

// arguments returns the command line, the caller's own flags last.
func (o *PrometheusOptions) arguments(b Binaries, home string, port int) []string {
	args := []string{
		"--config.file=" + filepath.Join(home, configFile),
		"--web.config.file=" + filepath.Join(home, webConfigFile),
		"--web.listen-address=" + ports.Loopback(port),
		// Less than the time that Stop leaves.
		"--storage.remote.flush-deadline=" + (stopDeadline / 2).String(),
	}
	if o.Agent {
		args = append(args, b.agent, "--storage.agent.path="+filepath.Join(home, "data"))
	} else {
		args = append(args, "--storage.tsdb.path="+filepath.Join(home, "data"))
	}
	if o.History > 0 {
		args = append(args, "--web.enable-remote-write-receiver")
	}
	return append(args, o.ExtraArgs...)
}

// WaitReady waits until it serves: what it had stored is read by then.
func (p *Prometheus) WaitReady(ctx context.Context) error {
	return p.wait(ctx, "to be ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := p.client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s/-/ready: %s", p.URL, response.Status)
		}
		return nil
	})
}

// API returns a client of the server's HTTP API that has what it takes to be let in.
func (p *Prometheus) API() (promv1.API, error) {
	client, err := api.NewClient(api.Config{Address: p.URL, Client: p.client})
	if err != nil {
		return nil, err
	}
	return promv1.NewAPI(client), nil
}
