package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/api/v1alpha1"
)

// What run can do, by the words that --enable takes.
const (
	enableAdapter  = "adapter"
	enableNodePool = "nodepool"
	enableExtender = "extender"

	acceptEnable = enableAdapter + ", " + enableNodePool + ", " + enableExtender + ", or several with commas in between"
)

// runOptions are the flags of the run command.
type runOptions struct {
	enable   []string
	logging  *logsapi.LoggingConfiguration
	httpAddr string
	qps      float32
	burst    int
	adapter  adapterOptions
	nodePool nodePoolOptions
	extender extenderOptions
}

func newRunCommand() *cobra.Command {
	o := &runOptions{adapter: adapterOptions{door: externalmetrics.NewOptions()}, logging: logsapi.NewLoggingConfiguration()}
	c := &cobra.Command{
		Use:   "run",
		Short: "Forecast and scale: pods for PredictedMetrics, nodes for WorkerPools; answer kube-scheduler",
		Long: `Run does what --enable names, any of these:

adapter   takes samples of the pods behind every PredictedMetric, forecasts their load each
          second, and serves the forecasts to HorizontalPodAutoscalers over
          external.metrics.k8s.io.

          Samples come from the pods' own metrics endpoints, from Prometheus servers, by
          remote write, or from metrics.k8s.io: each PredictedMetric says from where.
          Credentials of Prometheus servers are given here (--prometheus-config-file), and
          so is who may push (--remote-write-address and what follows it in the list below).

nodepool  keeps the workers of every WorkerPool ahead of the load: it launches instances
          for pods that no node takes and for load that is forecast, and drains and
          terminates workers that nobody needs. What each pool decides and why is told by
          foresail explain workerpool NAME.

          Credentials of AWS are found as the AWS SDK finds them: web identity, instance
          profile, or the environment. AWS_ENDPOINT_URL sends requests elsewhere.

extender  answers kube-scheduler as a scheduler extender, by what nodes are predicted to use
          rather than by what pods request: it refuses a node whose memory would run out
          (--extender-memory-limit) or that a WorkerPool is about to remove, and prefers those
          that fill up to --extender-pack-target, so that others empty. Pods that were bound
          since nodes were read last count. It changes nothing in the cluster, and scheduling
          goes on without it.

          What nodes use is read from metrics.k8s.io, or from --prometheus-url by
          --extender-cpu-query and --extender-memory-query. With the adapter enabled as well,
          pods count by what their PredictedMetric with the source resource forecasts, others
          by their requests. The scheduler must be told to ask: manifests/scheduler has its
          configuration. Why a pod went where it is: foresail explain pod NAME.

It listens on HTTPS for the Kubernetes API server (--secure-port, the adapter alone), which
authenticates and authorizes clients through the cluster; on HTTPS for the scheduler
(--extender-address, the extender alone); on HTTP for /livez, /readyz, /metrics and explain
(--http-address); and for remote write, if it is asked to.
Several replicas may run at once. They forecast and answer alike, if samples are pushed to
each; one of them, elected through a Lease, writes the status and events of PredictedMetrics,
and of each WorkerPool one, elected through its journal, launches and terminates.`,
		Example: `  # In a cluster, as the manifests do it
  foresail run

  # Pods and nodes
  foresail run --enable adapter,nodepool

  # Nodes alone, outside of a cluster
  foresail run --enable nodepool --kubeconfig ~/.kube/config

  # Beside a kube-scheduler, for it alone
  foresail run --enable extender`,
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
	fs.StringSliceVar(&o.enable, "enable", []string{enableAdapter}, "What to do: "+acceptEnable+".")
	o.adapter.door.AddFlags(fs)
	logsapi.AddFlags(o.logging, fs)
	fs.StringVar(&o.httpAddr, "http-address", ":8080", "Address that /livez, /readyz and /metrics are served on over HTTP; 0 serves none.")
	fs.StringSliceVar(&o.adapter.namespaces, "namespaces", nil, "Namespaces to look for PredictedMetrics in; empty is all of them.")
	fs.Float32Var(&o.qps, "kube-api-qps", 200, "Requests per second to the Kubernetes API server, watches aside.")
	fs.IntVar(&o.burst, "kube-api-burst", 300, "Requests to the Kubernetes API server that may exceed --kube-api-qps for a moment.")
	o.adapter.sources.addFlags(fs)
	o.adapter.lease.addFlags(fs)
	o.nodePool.addFlags(fs)
	o.extender.addFlags(fs)
}

func (o *runOptions) enabled(what string) bool { return slices.Contains(o.enable, what) }

func (o *runOptions) validate() error {
	for i := range o.adapter.namespaces {
		o.adapter.namespaces[i] = strings.TrimSpace(o.adapter.namespaces[i])
	}
	errs := []error{o.validateEnable(), logsapi.Validate(o.logging, nil, nil).ToAggregate(), o.adapter.sources.validate()}
	if o.enabled(enableAdapter) {
		errs = append(errs, o.adapter.validate())
	}
	errs = append(errs, o.nodePool.validate(o.enabled(enableNodePool)),
		o.nodePool.costReports.validate(o.enabled(enableNodePool), o.nodePool.webhookFile, o.adapter.sources.prometheusURL),
		o.extender.validate(o.enabled(enableExtender), o.adapter.sources.prometheusURL))
	if o.qps <= 0 {
		errs = append(errs, badFlag("kube-api-qps", o.qps, "above 0"))
	}
	if o.burst < 1 {
		errs = append(errs, badFlag("kube-api-burst", o.burst, "at least 1"))
	}
	return errors.Join(errs...)
}

func (o *runOptions) validateEnable() error {
	if len(o.enable) == 0 {
		return badFlag("enable", `""`, acceptEnable)
	}
	for i, what := range o.enable {
		o.enable[i] = strings.TrimSpace(what)
		if !slices.Contains([]string{enableAdapter, enableNodePool, enableExtender}, o.enable[i]) {
			return badFlag("enable", fmt.Sprintf("%q", what), acceptEnable)
		}
	}
	return nil
}

// gcPercent is how much the heap may grow, in percent of what lives, until garbage is collected. Most of it are samples,
// which live for minutes.
const gcPercent = 50

// part is what one word of --enable stands for, wired but for what the manager runs.
type part struct {
	ready func() error                  // why it is not ready yet
	run   []func(context.Context) error // beside the manager
}

// run wires what is enabled and runs it until the context ends or a part of it fails.
func (o *runOptions) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
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
	parts, err := o.start(ctx, mgr, ready.check)
	if err != nil {
		return err
	}
	ready.set(func() error {
		var errs []error
		for _, p := range parts {
			errs = append(errs, p.ready())
		}
		return errors.Join(errs...)
	})
	klog.InfoS("Running", "enabled", o.enable, "http", o.httpAddr, "cluster", config.Host)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return mgr.Start(ctx) })
	for _, p := range parts {
		for _, run := range p.run {
			group.Go(func() error { return run(ctx) })
		}
	}
	return group.Wait()
}

// start wires each part that is enabled.
func (o *runOptions) start(ctx context.Context, mgr ctrl.Manager, ready func() error) ([]*part, error) {
	var parts []*part
	var uses *predictedmetric.PodUses
	if o.enabled(enableAdapter) {
		p, ofPods, err := o.adapter.start(ctx, mgr, ready)
		if err != nil {
			return nil, err
		}
		parts, uses = append(parts, p), ofPods
	}
	if o.enabled(enableNodePool) {
		p, err := o.nodePool.start(mgr, &o.adapter.sources)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if o.enabled(enableExtender) {
		p, err := o.extender.start(mgr, &o.adapter.sources, uses)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (o *runOptions) clusterConfig() (*rest.Config, error) {
	load := rest.InClusterConfig
	kubeconfig := o.adapter.door.Kubeconfig // whose flag it is, whatever is enabled
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, usageError{fmt.Errorf("--kubeconfig: %q: must be a readable kubeconfig file, or empty inside a cluster: %w", kubeconfig, err)}
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
	for _, namespace := range o.adapter.namespaces {
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

// newObjectClient returns a client that reads pods and nodes as protobuf: there may be many.
func newObjectClient(mgr ctrl.Manager) (kubernetes.Interface, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for pods and nodes: %w", err)
	}
	return client, nil
}

type runnable func(context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }

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
