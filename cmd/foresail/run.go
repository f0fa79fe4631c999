package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/forecaster"
	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/api/v1alpha1"
)

// runOptions are the flags of the run command.
type runOptions struct {
	door       *externalmetrics.Options
	logging    *logsapi.LoggingConfiguration
	httpAddr   string
	namespaces []string
	lease      leaseOptions
	qps        float32
	burst      int
	sources    sourceOptions
}

func newRunCommand() *cobra.Command {
	o := &runOptions{door: externalmetrics.NewOptions(), logging: logsapi.NewLoggingConfiguration()}
	c := &cobra.Command{
		Use:   "run",
		Short: "Forecast what PredictedMetrics ask for and serve it as external.metrics.k8s.io",
		Long: `Run takes samples of the pods behind every PredictedMetric, forecasts their load each
second, and serves the forecasts to HorizontalPodAutoscalers over external.metrics.k8s.io.

Samples come from the pods' own metrics endpoints, from Prometheus servers, by remote
write, or from metrics.k8s.io: each PredictedMetric says from where. Credentials of
Prometheus servers are given here (--prometheus-config-file), and so is who may push
(--remote-write-address and what follows it in the list below).

It listens on two ports: HTTPS for the Kubernetes API server (--secure-port), which
authenticates and authorizes clients through the cluster, and HTTP for /livez, /readyz
and /metrics (--http-address); and on a third for remote write, if it is asked to.
Several replicas may run at once and answer alike, if samples are pushed to each; one of
them, elected through a Lease, writes status and events.`,
		Example: `  # In a cluster, as the manifests do it
  foresail run

  # Outside of one
  foresail run --kubeconfig ~/.kube/config --secure-port 6443`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return usageError{err}
			}
			return o.run(c.Context())
		},
	}
	o.addFlags(c.Flags())
	return c
}

func (o *runOptions) addFlags(fs *pflag.FlagSet) {
	o.door.AddFlags(fs)
	logsapi.AddFlags(o.logging, fs)
	fs.StringVar(&o.httpAddr, "http-address", ":8080", "Address that /livez, /readyz and /metrics are served on over HTTP; 0 serves none.")
	fs.StringSliceVar(&o.namespaces, "namespaces", nil, "Namespaces to look for PredictedMetrics in; empty is all of them.")
	fs.Float32Var(&o.qps, "kube-api-qps", 200, "Requests per second to the Kubernetes API server, watches aside.")
	fs.IntVar(&o.burst, "kube-api-burst", 300, "Requests to the Kubernetes API server that may exceed --kube-api-qps for a moment.")
	o.sources.addFlags(fs)
	o.lease.addFlags(fs)
}

func (o *runOptions) validate() error {
	for i := range o.namespaces {
		o.namespaces[i] = strings.TrimSpace(o.namespaces[i])
	}
	errs := []error{o.door.Validate(), logsapi.ValidateAndApply(o.logging, nil), o.lease.validate(), o.sources.validate()}
	if o.qps <= 0 {
		errs = append(errs, badFlag("kube-api-qps", o.qps, "above 0"))
	}
	if o.burst < 1 {
		errs = append(errs, badFlag("kube-api-burst", o.burst, "at least 1"))
	}
	return errors.Join(errs...)
}

// gcPercent is how much the heap may grow, in percent of what lives, until garbage is collected. Most of it are samples,
// which live for minutes.
const gcPercent = 50

// run wires the adapter and runs it until the context ends or a part of it fails.
func (o *runOptions) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctrl.SetLogger(klog.Background())
	config, err := o.clusterConfig()
	if err != nil {
		return err
	}
	var ready readiness
	mgr, err := o.newManager(config, &ready)
	if err != nil {
		return fmt.Errorf("connect to the cluster at %s: %w", config.Host, err)
	}
	a, err := newAdapter(ctx, mgr, &o.sources, o.namespaces)
	if err != nil {
		return err
	}
	provider := externalmetrics.New(a.forecaster, time.Now)
	metrics.Registry.MustRegister(provider)
	server, err := o.door.NewServer(externalmetrics.Config{Provider: provider, Ready: ready.check, Version: buildVersion()})
	if err != nil {
		return err
	}
	ready.set(func() error { return errors.Join(a.known(), a.forecaster.Ready()) })
	klog.InfoS("Serving external.metrics.k8s.io", "address", server.Addr(), "http", o.httpAddr, "cluster", config.Host)

	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return mgr.Start(ctx) })
	parts.Go(func() error { return server.Run(ctx) })
	parts.Go(func() error { return o.lease.run(ctx, config, a.writer.Start) })
	return parts.Wait()
}

func (o *runOptions) clusterConfig() (*rest.Config, error) {
	load := rest.InClusterConfig
	if o.door.Kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", o.door.Kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, usageError{fmt.Errorf("--kubeconfig: %q: must be a readable kubeconfig file, or empty inside a cluster: %w", o.door.Kubeconfig, err)}
	}
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = "foresail/" + buildVersion()
	return config, nil
}

// newManager returns a manager without pods in its cache. The manager elects no leader:
// one that loses its lease would end the process, and with it everything that has been read.
func (o *runOptions) newManager(config *rest.Config, ready *readiness) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	for _, namespace := range o.namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  options,
		Metrics: metricsserver.Options{
			BindAddress: o.httpAddr,
			ExtraHandlers: map[string]http.Handler{
				"/livez":  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }),
				"/readyz": ready,
			},
		},
		HealthProbeBindAddress: "0",
	})
}

// adapter is the parts that turn PredictedMetrics into forecasts.
type adapter struct {
	forecaster *forecaster.Forecaster
	known      func() error // why pods or PredictedMetrics are not all known yet
	writer     *predictedmetric.Writer
}

// newAdapter wires sources, forecaster and reconciler, and has the manager run them.
func newAdapter(ctx context.Context, mgr ctrl.Manager, o *sourceOptions, namespaces []string) (*adapter, error) {
	tracker := instances.NewTracker(instances.Options{})
	pods, err := newPodWatcher(mgr, tracker, namespaces)
	if err != nil {
		return nil, err
	}
	scales, err := newScales(mgr)
	if err != nil {
		return nil, err
	}
	forecasts := forecaster.New(time.Now, metrics.Registry)
	reconciler := &predictedmetric.Reconciler{
		Client: mgr.GetClient(), Scales: scales, Tracker: tracker, Forecaster: forecasts, Known: pods.Synced,
	}
	known := func() error {
		if err := pods.Started(); err != nil {
			return err
		}
		return reconciler.Settled(ctx)
	}
	if reconciler.Sources, err = o.build(mgr, known); err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("watch PredictedMetrics: %w", err)
	}
	if err := errors.Join(mgr.Add(runnable(pods.Run)), mgr.Add(runnable(forecasts.Run))); err != nil {
		return nil, err
	}
	writer := &predictedmetric.Writer{
		Client: mgr.GetClient(), Reconciler: reconciler, Now: time.Now,
		Events: mgr.GetEventRecorder("foresail"), Log: mgr.GetLogger().WithName("status"),
	}
	return &adapter{forecaster: forecasts, known: known, writer: writer}, nil
}

// newPodWatcher reads pods as protobuf: there may be many.
func newPodWatcher(mgr ctrl.Manager, tracker *instances.Tracker, namespaces []string) (*instances.Watcher, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for pods: %w", err)
	}
	return instances.NewWatcher(client, tracker, namespaces...), nil
}

type runnable func(context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }

func newScales(mgr ctrl.Manager) (*predictedmetric.Scales, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	c, err := scale.NewForConfig(mgr.GetConfig(), mgr.GetRESTMapper(), dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(d))
	if err != nil {
		return nil, fmt.Errorf("make a client for scale subresources: %w", err)
	}
	return &predictedmetric.Scales{Client: c, Mapper: mgr.GetRESTMapper()}, nil
}

// readiness answers /readyz.
type readiness struct {
	probe atomic.Pointer[func() error]
}

func (r *readiness) set(probe func() error) { r.probe.Store(&probe) }

func (r *readiness) check() error {
	probe := r.probe.Load()
	if probe == nil {
		return errors.New("starting")
	}
	return (*probe)()
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := r.check(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// buildVersion is how this build names itself to others.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info).Version
}
