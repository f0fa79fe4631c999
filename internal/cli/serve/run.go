// Package serve is foresail run: its flags, and the wiring of the parts that they enable.
package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/foresail/foresail/adapter/door/externalmetrics"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

// namespaceFlag is the namespace that Foresail runs in, as in the commands that find it in a cluster.
const namespaceFlag = "foresail-namespace"

// runOptions are the flags of the run command. validate checks them and changes nothing, complete
// loads the files that they name, run runs.
type runOptions struct {
	enable    []string
	namespace string // that Foresail runs in
	anonymous anonymousOptions
	serving   servingOptions
	tracing   tracingOptions
	qps       float32
	logging   *logsapi.LoggingConfiguration
	adapter   adapterOptions
	sources   sourceOptions
	nodePool  nodePoolOptions
	extender  extenderOptions
}

func newRunOptions() *runOptions {
	o := &runOptions{logging: logsapi.NewLoggingConfiguration()}
	o.serving.anonymous, o.sources.anonymous, o.extender.anonymous = &o.anonymous, &o.anonymous, &o.anonymous
	o.adapter.lease.namespace, o.adapter.api.apiService.namespace = &o.namespace, &o.namespace
	o.adapter.api.server = externalmetrics.NewOptions()
	o.adapter.doors = doorsOf(o)
	return o
}

// NewCommand returns foresail run.
func NewCommand() *cobra.Command {
	o := newRunOptions()
	c := &cobra.Command{
		Use:   "run",
		Short: "Forecast and scale: pods for PredictedMetrics, nodes for WorkerPools; answer kube-scheduler",
		Long: `Run runs the parts that --enable names:

adapter   reads the pods behind every PredictedMetric, forecasts their load each second, and
          serves the forecasts to HorizontalPodAutoscalers over external.metrics.k8s.io.

          Each PredictedMetric names its source: the pods' own metrics endpoints, a
          Prometheus server, remote write, or metrics.k8s.io. Credentials of Prometheus
          servers and the receiver of remote write are set up here: see the flags of samples.

          A PredictedMetric with spec.autoscaler also has the HorizontalPodAutoscaler created and
          kept as recommended; foresail hpa NAME prints the same one. One with
          spec.capacityBuffer has a CapacityBuffer kept, for which Karpenter or
          cluster-autoscaler starts nodes ahead of the load.

          It registers with the API server by an APIService, unless another server has the
          external metrics of the cluster, and signs its own serving certificate, which the API
          server verifies: see the flags of the API service. It can forward reads of metrics that
          are not its own to that other server: see the flags of forwarding.

          With --custom-metrics it serves the same metrics over custom.metrics.k8s.io: see the
          flags of custom metrics.

          With --keda-address it is an external scaler of KEDA as well: see the flags of KEDA.

nodepool  keeps the workers of every WorkerPool ahead of the load. It launches instances for
          pods that fit nowhere and for forecast load, and drains and terminates idle workers.
          foresail explain workerpool NAME shows the decisions of a pool with their reasons.

          The AWS SDK finds its credentials as always: web identity, instance profile, or
          the environment. AWS_ENDPOINT_URL redirects requests.

extender  answers kube-scheduler as a scheduler extender, by predicted use instead of requests.
          It filters nodes whose memory would run out (--extender-memory-limit) or that a
          WorkerPool is about to remove, and prefers nodes that fill up to
          --extender-pack-target, so that others become empty. It changes nothing in the
          cluster, and scheduling continues without it.

          The use of nodes comes from metrics.k8s.io, or from --prometheus with
          --extender-cpu-query and --extender-memory-query. Pods count by their requests, or,
          with the adapter, by the forecast of a PredictedMetric with the source resource.
          manifests/scheduler has the configuration of the scheduler.
          foresail explain pod NAME shows why a pod is where it is.

Run serves
  HTTPS to the Kubernetes API server (--secure-port, adapter only)
  HTTPS to the scheduler (--extender-address, extender only)
  HTTPS for /metrics, explain and the dashboard, to clients that the cluster authorizes
  (--metrics-address)
  HTTP for the probes /livez and /readyz (--http-address)
  gRPC to KEDA (--keda-address, if set)
  remote write and OTLP metrics (--remote-write-address, if set)

Several replicas may run side by side; all of them forecast and answer. One replica, elected
through a Lease, writes status, Events, checkpoints, HPAs and CapacityBuffers, and reads
histories. For each WorkerPool one, elected through the pool's journal, launches and terminates.`,
		Example: `  # In a cluster, as the manifests do it
  foresail run

  # Pods and nodes
  foresail run --enable adapter,nodepool

  # Pods, outside of a cluster, where the Service foresail of that namespace leads here
  foresail run --kubeconfig ~/.kube/config --foresail-namespace foresail-system --apiservice-service foresail:6443

  # Nodes alone, outside of a cluster
  foresail run --enable nodepool --kubeconfig ~/.kube/config

  # Beside a kube-scheduler, for it alone
  foresail run --enable extender`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.readTestOptions(os.Getenv); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return cli.Unusable(err)
			}
			if err := o.complete(); err != nil {
				return cli.Unusable(err)
			}
			return o.run(c.Context())
		},
	}
	groups := o.flagGroups()
	for _, name := range groups.Order {
		c.Flags().AddFlagSet(groups.FlagSets[name])
	}
	c.SetUsageFunc(func(c *cobra.Command) error { return cli.PrintGroupedUsage(c, groups) })
	return c
}

// flagGroups returns the flags in groups, in the order of the help. It is called once: each flag is
// defined then.
func (o *runOptions) flagGroups() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets
	fs := groups.FlagSet(groupRun)
	fs.StringSliceVar(&o.enable, "enable", []string{enableAdapter}, "Parts to run: "+acceptEnable+".")
	fs.StringSliceVar(&o.adapter.namespaces, "namespaces", nil,
		"Namespaces whose PredictedMetrics are served. Empty is all namespaces.")
	fs.StringVar(&o.namespace, namespaceFlag, podNamespace(), "Namespace that Foresail runs in: that of its "+
		"Lease, of the Service that the APIService leads to, and of the Secret of its certificate authority. In a "+
		"pod it defaults to the pod's.")
	o.anonymous.addFlags(fs)
	o.serving.addFlags(fs)
	o.tracing.addFlags(fs)
	o.adapter.lease.addFlags(fs)
	fs = groups.FlagSet(groupCluster)
	fs.Float32Var(&o.qps, "kube-api-qps", 200, "Maximum rate of requests to the Kubernetes API server, per "+
		"second; for a moment half as many more. Watches do not count.")
	for _, d := range o.adapter.doors {
		d.addFlags(&groups)
	}
	o.sources.addFlags(groups.FlagSet(groupSamples))
	o.nodePool.addFlags(groups.FlagSet(groupNodePool))
	o.extender.addFlags(groups.FlagSet(groupExtender))
	library := &pflag.FlagSet{}
	logsapi.AddFlags(o.logging, library)
	for _, name := range []string{"logging-format", "v", "vmodule"} {
		groups.FlagSet(groupLogging).AddFlag(library.Lookup(name))
	}
	return groups
}

func (o *runOptions) enabled(part string) bool { return slices.Contains(trimmed(o.enable), part) }

// trimmed returns the words of a list without the space around them.
func trimmed(list []string) []string {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = strings.TrimSpace(word)
	}
	return words
}

// validate returns everything that is wrong with the flags, joined. It reads the files that they
// name and changes nothing.
func (o *runOptions) validate() error {
	errs := []error{o.validateEnable(), o.anonymous.validate(), logsapi.Validate(o.logging, nil, nil).ToAggregate(),
		o.serving.validate(), o.tracing.validate(), o.sources.validate()}
	if o.enabled(enableAdapter) {
		errs = append(errs, o.adapter.validate())
	} else {
		errs = append(errs, o.adapter.validateAbsence())
	}
	errs = append(errs, o.nodePool.validate(o.enabled(enableNodePool), o.sources.prometheus.url),
		o.extender.validate(o.enabled(enableExtender), o.sources.prometheus.url))
	if o.qps <= 0 {
		errs = append(errs, cli.BadFlag("kube-api-qps", o.qps, "above 0"))
	}
	return errors.Join(errs...)
}

func (o *runOptions) validateEnable() error {
	var errs []error
	for _, part := range trimmed(o.enable) {
		if !slices.Contains([]string{enableAdapter, enableNodePool, enableExtender}, part) {
			errs = append(errs, cli.BadFlag("enable", fmt.Sprintf("%q", part), acceptEnable))
		}
	}
	if len(o.enable) == 0 {
		errs = append(errs, cli.BadFlag("enable", `""`, acceptEnable))
	}
	return errors.Join(errs...)
}

// complete loads what the flags name. They are valid.
func (o *runOptions) complete() error {
	o.enable, o.adapter.namespaces = trimmed(o.enable), trimmed(o.adapter.namespaces)
	return errors.Join(o.sources.complete(), o.nodePool.complete())
}

// run wires the enabled parts and runs them until the context ends or one of them fails.
func (o *runOptions) run(ctx context.Context) error {
	if err := limitMemory(ctx, os.Getenv); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
	}
	log := klog.FromContext(ctx)
	ctrl.SetLogger(log)
	config, err := o.clusterConfig()
	if err != nil {
		return err
	}
	traces, err := o.tracing.start(ctx)
	if err != nil {
		return err
	}
	defer traces.end(ctx)
	if o.tracing.file != "" { // or requests and cycles would do for nothing what they do for traces
		config.Wrap(tracing.WrapperFor(traces.sampled))
		o.adapter.api.server.Traces, o.nodePool.traces = traces.sampled, traces.all
	}
	scheme := newScheme()
	targets := predictedmetric.NewWatches(scheme, time.Now)
	mgr, err := o.newManager(config, scheme, targets)
	if err != nil {
		return fmt.Errorf("connect to the cluster at %s: %w", config.Host, err)
	}
	live, ready := &probe{}, &probe{before: errors.New("starting")}
	if err := o.serving.serveProbes(mgr, live, ready); err != nil {
		return err
	}
	watches, err := startFeeds(mgr)
	if err != nil {
		return err
	}
	watches.targets = targets
	parts, err := o.start(ctx, mgr, watches, ready.check)
	if err != nil {
		return err
	}
	ready.set(func() error { return join(parts, (*part).readiness) })
	live.set(func() error { return join(parts, (*part).liveness) })
	log.Info("Running", "enabled", o.enable, "http", o.serving.probeAddress, "metrics", o.serving.metricsAddress,
		"cluster", config.Host)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return mgr.Start(ctx) })
	group.Go(func() error { return watches.run(ctx) })
	for _, p := range parts {
		for _, run := range p.run {
			group.Go(func() error { return run(ctx) })
		}
	}
	return group.Wait()
}

// start wires the enabled parts.
func (o *runOptions) start(ctx context.Context, mgr ctrl.Manager, watches *feeds, ready func() error) ([]*part, error) {
	var parts []*part
	var uses *predictedmetric.PodUses
	if o.enabled(enableAdapter) {
		all, reconciler, err := o.adapter.start(ctx, mgr, watches, &o.sources, ready)
		if err != nil {
			return nil, err
		}
		parts = append(parts, all...)
		uses = predictedmetric.NewPodUses(reconciler, o.extender.horizon, time.Now)
	}
	if o.enabled(enableNodePool) {
		p, err := o.nodePool.start(mgr, watches, &o.sources)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if o.enabled(enableExtender) {
		p, err := o.extender.start(mgr, watches, &o.sources, uses)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (o *runOptions) clusterConfig() (*rest.Config, error) {
	load := rest.InClusterConfig
	kubeconfig := o.adapter.api.server.Kubeconfig // the flag is the adapter's, and counts for all parts
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, cli.Unusable(fmt.Errorf("--kubeconfig: %q: must be a readable kubeconfig file, or empty inside a cluster: %w", kubeconfig, err))
	}
	config.QPS, config.Burst = o.qps, int(math.Ceil(1.5*float64(o.qps)))
	config.UserAgent = cli.UserAgent()
	return config, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// newManager returns a manager without pods in its cache. It elects no leader: a manager that loses
// its lease ends the process, and with it the samples.
func (o *runOptions) newManager(
	config *rest.Config, scheme *runtime.Scheme, watches *predictedmetric.Watches,
) (ctrl.Manager, error) {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         predictedmetric.WatchedTargets(),
		NewInformer:      watches.NewInformer,
	}
	for _, namespace := range o.adapter.namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	served, watcher, err := o.serving.metricsServer()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Cache: options, Metrics: served,
		HealthProbeBindAddress: noAddress})
	if err != nil || watcher == nil {
		return mgr, err
	}
	return mgr, mgr.Add(watcher)
}

// doorsOf returns all doors. A new one is a type of its own, and a line here.
func doorsOf(o *runOptions) []door {
	return []door{&o.adapter.api, &kedaDoor{anonymous: &o.anonymous}, &dashboardDoor{serving: &o.serving}}
}
