package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/adapter/nodeload"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/standing"
)

const (
	// extenderFlags is what the names of all flags of the extender begin with.
	extenderFlags = "extender-"
	// mostSteps is how many readings ahead a prediction may be.
	mostSteps = 1000
	// knownWithin is how long a start waits for what nodes use, and for WorkerPools: there is an answer without either.
	knownWithin = time.Minute
)

// extenderOptions are the flags of the part that answers kube-scheduler.
type extenderOptions struct {
	address                     string
	certFile, keyFile, clientCA string

	rules    extender.Rules
	horizon  time.Duration
	interval time.Duration
	queries  nodeQueries

	flags *pflag.FlagSet // that all of these are of
}

// nodeQueries is what Prometheus is asked for the use of nodes.
type nodeQueries struct{ cpu, memory, label string }

func (o *extenderOptions) addFlags(fs *pflag.FlagSet) {
	o.flags, o.rules = fs, extender.DefaultRules()
	fs.StringVar(&o.address, "extender-address", ":9443", "Address that kube-scheduler is answered on over HTTPS. 127.0.0.1:9443 beside a scheduler on the same host.")
	fs.StringVar(&o.certFile, "extender-tls-cert-file", "", "File with the certificate of that address, read again when it changes; empty makes one at start, signed by itself.")
	fs.StringVar(&o.keyFile, "extender-tls-private-key-file", "", "File with the private key of that certificate.")
	fs.StringVar(&o.clientCA, "extender-client-ca-file", "", "File with the authorities of client certificates that are asked for; empty asks for none.")
	fs.Float64Var(&o.rules.Target, "extender-pack-target", o.rules.Target, "Share of a node that pods are packed up to, by what it is predicted to use: the fuller the better below, the emptier the better above.")
	fs.Float64Var(&o.rules.MemoryLimit, "extender-memory-limit", o.rules.MemoryLimit, "Share of a node's allocatable memory: a node predicted to use more is refused. 0 refuses none.")
	fs.Float64Var(&o.rules.CPULimit, "extender-cpu-limit", o.rules.CPULimit, "Share of a node's allocatable CPU: a node predicted to use more is refused. 0 refuses none.")
	fs.DurationVar(&o.rules.WarmUp, "extender-warm-up", o.rules.WarmUp, "How long a new node is preferred less than the others; 0 is not at all.")
	fs.DurationVar(&o.rules.Patience, "extender-patience", o.rules.Patience, "How long a pod that every node is refused to waits for a pool of workers to grow, before it is let pass; 0 is not at all.")
	fs.DurationVar(&o.horizon, "extender-horizon", 2*time.Minute, "How far ahead the use of nodes is predicted.")
	fs.DurationVar(&o.interval, "extender-metrics-interval", 15*time.Second, "How often the use of nodes is read.")
	fs.StringVar(&o.queries.cpu, "extender-cpu-query", nodeload.DefaultCPUQuery, "PromQL that tells the cores that each node uses, asked of --prometheus-url. Without that, or if this and --extender-memory-query are empty, metrics.k8s.io is read.")
	fs.StringVar(&o.queries.memory, "extender-memory-query", nodeload.DefaultMemoryQuery, "PromQL that tells the bytes of memory that each node uses.")
	fs.StringVar(&o.queries.label, "extender-node-label", nodeload.DefaultNodeLabel, "Label by which the answers to both name a Node, by its name or an address of it, with or without a port.")
}

// start wires the extender. It listens from then on. uses is nil without the adapter.
func (o *extenderOptions) start(mgr ctrl.Manager, sources *sourceOptions, uses *predictedmetric.PodUses) (*part, error) {
	client, err := newObjectClient(mgr)
	if err != nil {
		return nil, err
	}
	p, log := &part{}, slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("extender")))
	loads, err := o.newNodeLoads(mgr, client, sources, log, p)
	if err != nil {
		return nil, err
	}
	pools := standing.New(mgr.GetCache(), time.Now, log)
	options := extender.Options{
		Client: client, Forecasts: loads, Pools: pools, RemovalMark: drain.Mark,
		Rules: o.rules, Now: time.Now, Registry: metrics.Registry, Log: log,
	}
	if uses != nil {
		options.Workloads, p.run = uses, append(p.run, uses.Run)
	}
	e, err := extender.New(options)
	if err != nil {
		return nil, err
	}
	server, err := extender.NewServer(extender.ServerOptions{
		Address: o.address, CertFile: o.certFile, KeyFile: o.keyFile, ClientCAFile: o.clientCA,
	}, e.Handler(), log)
	if err != nil {
		return nil, o.inFlags(err)
	}
	if err := mgr.AddMetricsServerExtraHandler(extender.ExplainPath, e.ExplainHandler()); err != nil {
		return nil, fmt.Errorf("serve what explain asks for: %w", err)
	}
	klog.InfoS("Answering kube-scheduler", "address", server.Addr(), "cluster", mgr.GetConfig().Host)
	begun := time.Now()
	p.ready = func() error {
		if time.Since(begun) > knownWithin {
			return e.Ready()
		}
		return errors.Join(e.Ready(), loads.Ready(), pools.Ready())
	}
	p.run = append(p.run, server.Run, e.Run, loads.Run, pools.Run)
	return p, nil
}

// newNodeLoads makes what reads and predicts the use of nodes. What it needs beside itself runs with p.
func (o *extenderOptions) newNodeLoads(mgr ctrl.Manager, client kubernetes.Interface, sources *sourceOptions, log *slog.Logger, p *part) (*nodeload.Forecaster, error) {
	options := nodeload.Options{
		Interval: o.interval, Horizon: o.horizon, StaleAfter: o.rules.StaleAfter, Now: time.Now, Registry: metrics.Registry, Log: log,
	}
	if o.queries.ofPrometheus(sources.prometheusURL) {
		api, err := newServers(sources).API(sources.prometheusURL)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-url: %w", err)
		}
		names := newNodeNames(client)
		p.run = append(p.run, names.run)
		options.Nodes = names.all
		options.Source = nodeload.NewPrometheus(nodeload.PrometheusOptions{
			API: api, Address: sources.prometheusURL, CPUQuery: o.queries.cpu, MemoryQuery: o.queries.memory, NodeLabel: o.queries.label,
			Nodes: names.all, Interval: o.interval, Timeout: sources.prometheus.Timeout,
		})
		return nodeload.New(options)
	}
	usage, err := metricsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for metrics.k8s.io: %w", err)
	}
	options.Source = &nodeload.MetricsAPI{Client: usage.MetricsV1beta1()}
	return nodeload.New(options)
}

// inFlags says an error of the server's options in terms of flags.
func (o *extenderOptions) inFlags(err error) error {
	var option *extender.OptionError
	if !errors.As(err, &option) {
		return err
	}
	flag := map[string]string{
		"Address": "extender-address", "CertFile": "extender-tls-cert-file", "KeyFile": "extender-tls-private-key-file",
		"ClientCAFile": "extender-client-ca-file",
	}[option.Field]
	return badFlag(flag, fmt.Sprintf("%q", option.Value), fmt.Sprintf("%s: %v", option.Want, option.Err))
}

// ofPrometheus tells whether Prometheus is asked, where there is one.
func (q nodeQueries) ofPrometheus(url string) bool { return url != "" && q.cpu != "" && q.memory != "" }

// validate also reads the files that flags name.
func (o *extenderOptions) validate(enabled bool, prometheusURL string) error {
	if !enabled {
		return o.validateAbsence()
	}
	return errors.Join(o.validateServing(), o.validateRules(), o.validateReading(), o.validateQueries(prometheusURL))
}

// validateAbsence refuses flags of the extender where there is none.
func (o *extenderOptions) validateAbsence() error {
	var errs []error
	o.flags.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, extenderFlags) {
			errs = append(errs, badFlag(f.Name, fmt.Sprintf("%q", f.Value), "left out unless --enable has "+enableExtender))
		}
	})
	return errors.Join(errs...)
}

func (o *extenderOptions) validateServing() error {
	var errs []error
	if err := checkAddress(o.address); err != nil {
		errs = append(errs, badFlag("extender-address", fmt.Sprintf("%q", o.address), fmt.Sprintf("a host and a port, such as :9443 or 127.0.0.1:9443: %v", err)))
	}
	switch {
	case o.certFile == "" && o.keyFile != "":
		errs = append(errs, badFlag("extender-tls-cert-file", `""`, "given together with --extender-tls-private-key-file, or neither"))
	case o.certFile != "" && o.keyFile == "":
		errs = append(errs, badFlag("extender-tls-private-key-file", `""`, "given together with --extender-tls-cert-file, or neither"))
	case o.certFile != "":
		if _, err := tls.LoadX509KeyPair(o.certFile, o.keyFile); err != nil {
			errs = append(errs, badFlag("extender-tls-cert-file", fmt.Sprintf("%q", o.certFile), fmt.Sprintf("a certificate in PEM, the key of which is in --extender-tls-private-key-file: %v", err)))
		}
	}
	if o.clientCA != "" {
		if err := checkAuthorities(o.clientCA); err != nil {
			errs = append(errs, badFlag("extender-client-ca-file", fmt.Sprintf("%q", o.clientCA), fmt.Sprintf("a file with certificates in PEM: %v", err)))
		}
	}
	return errors.Join(errs...)
}

// checkAddress refuses what cannot be listened on.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the port %q is not a number from 1 to 65535", port)
	}
	return nil
}

func checkAuthorities(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return errors.New("there is none in it")
	}
	return nil
}

func (o *extenderOptions) validateRules() error {
	var errs []error
	if t := o.rules.Target; !(t > 0 && t < 1) {
		errs = append(errs, badFlag("extender-pack-target", t, "above 0 and below 1"))
	}
	if l := o.rules.MemoryLimit; !(l >= 0 && l <= 1) {
		errs = append(errs, badFlag("extender-memory-limit", l, "from 0, which is no limit, to 1"))
	}
	if l := o.rules.CPULimit; !(l >= 0 && l <= 1) {
		errs = append(errs, badFlag("extender-cpu-limit", l, "from 0, which is no limit, to 1"))
	}
	if o.rules.WarmUp < 0 {
		errs = append(errs, badFlag("extender-warm-up", o.rules.WarmUp, "0s or more"))
	}
	if o.rules.Patience < 0 {
		errs = append(errs, badFlag("extender-patience", o.rules.Patience, "0s or more"))
	}
	return errors.Join(errs...)
}

// Predictions are dropped once they are older than extender.Rules.StaleAfter, so reading less often than that would mean
// to have none.
func (o *extenderOptions) validateReading() error {
	var errs []error
	if most := o.rules.StaleAfter / 3; o.interval < time.Second || o.interval > most {
		errs = append(errs, badFlag("extender-metrics-interval", o.interval, fmt.Sprintf("from 1s to %s", most)))
	}
	if most := min(time.Hour, mostSteps*o.interval); o.horizon < o.interval || o.horizon > most {
		errs = append(errs, badFlag("extender-horizon", o.horizon, fmt.Sprintf("from --extender-metrics-interval to %s", most)))
	}
	return errors.Join(errs...)
}

// validateQueries does not judge PromQL: the server will, and its words are told.
func (o *extenderOptions) validateQueries(prometheusURL string) error {
	var errs []error
	if prometheusURL == "" {
		for _, name := range []string{"extender-cpu-query", "extender-memory-query", "extender-node-label"} {
			if f := o.flags.Lookup(name); f.Changed && f.Value.String() != "" {
				errs = append(errs, badFlag(name, fmt.Sprintf("%q", f.Value), "left out unless --prometheus-url says whom to ask"))
			}
		}
		return errors.Join(errs...)
	}
	if o.queries.cpu == "" && o.queries.memory != "" {
		errs = append(errs, badFlag("extender-cpu-query", `""`, "a query in PromQL, or empty together with --extender-memory-query"))
	}
	if o.queries.memory == "" && o.queries.cpu != "" {
		errs = append(errs, badFlag("extender-memory-query", `""`, "a query in PromQL, or empty together with --extender-cpu-query"))
	}
	if o.queries.ofPrometheus(prometheusURL) && o.queries.label == "" {
		errs = append(errs, badFlag("extender-node-label", `""`, "the name of a label, such as node"))
	}
	return errors.Join(errs...)
}
