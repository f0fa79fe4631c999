package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/controller"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/prices"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/report"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/dynamodb"
	kubernetesstate "github.com/foresail/foresail/nodepool/state/kubernetes"
)

const webhookFlag = "notify-webhook-url-file"

// nodePoolOptions are the flags of the part that scales worker nodes.
type nodePoolOptions struct {
	webhookFile string
	webhook     *report.Webhook // nil: none
	costReports costReportOptions
	traces      trace.TracerProvider // of actions
}

func (o *nodePoolOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.webhookFile, webhookFlag, "",
		"File with the URL of a webhook that receives the events of WorkerPools, in the format of Slack's incoming webhooks.")
	o.costReports.addFlags(fs)
}

// validate reads the files that flags name, and keeps nothing of them.
func (o *nodePoolOptions) validate(enabled bool, prometheusURL string) error {
	errs := []error{o.costReports.validate(enabled, o.webhookFile, prometheusURL)}
	if o.webhookFile != "" && !enabled {
		errs = append(errs, cli.BadFlag(webhookFlag, fmt.Sprintf("%q", o.webhookFile),
			"left out unless --enable has "+enableNodePool))
	} else if _, err := o.readWebhook(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// complete loads the files that flags name.
func (o *nodePoolOptions) complete() error {
	address, err := o.readWebhook()
	if address != "" {
		o.webhook = &report.Webhook{URL: address, Client: http.DefaultClient}
	}
	return errors.Join(err, o.costReports.complete())
}

// readWebhook returns the URL of the webhook, "" without one.
func (o *nodePoolOptions) readWebhook() (string, error) {
	if o.webhookFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(o.webhookFile)
	if err != nil {
		return "", cli.BadFlag(webhookFlag, err, "a file with a URL")
	}
	text := string(bytes.TrimSpace(content))
	if u, err := url.Parse(text); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", cli.BadFlag(webhookFlag, fmt.Sprintf("%q", o.webhookFile),
			"a file with nothing but a URL, such as https://hooks.slack.com/services/…")
	}
	return text, nil
}

// start wires the pools and has the manager run them.
func (o *nodePoolOptions) start(mgr ctrl.Manager, watches *feeds, sources *sourceOptions) (*part, error) {
	client, err := newObjectClient(mgr)
	if err != nil {
		return nil, err
	}
	owner, err := newOwner()
	if err != nil {
		return nil, err
	}
	objects, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for journals: %w", err)
	}
	servers := sources.prometheus.clients()
	reports, err := o.costReports.build(sources.prometheus.url, servers)
	if err != nil {
		return nil, err
	}
	watcher := cluster.NewWatcher(client, cluster.WithFeeds(watches.nodes, watches.pods))
	b := &poolBuilder{
		client: client, manager: mgr, sources: sources, webhook: o.webhook, reports: reports, traces: o.traces,
		servers: servers, store: kubernetesstate.New(objects.RESTClient()), told: report.NewMetrics(metrics.Registry),
	}
	if b.providers, err = provider.NewSet(registeredProviders(),
		provider.Environment{Kubernetes: client, Cluster: b.clusterID, Prices: o.costReports.prices}); err != nil {
		return nil, err
	}
	pools := controller.New(controller.Options{
		Client: mgr.GetClient(), Build: b.build, Observer: watcher,
		Drainer:    &drain.Drainer{Client: client, Now: time.Now, Leaving: watcher.Leaving},
		Labeler:    controller.Labeler{Client: client},
		Kubernetes: client, Forget: b.told.Forget, Owner: owner, Now: time.Now,
	})
	if err := errors.Join(pools.SetupWithManager(mgr), mgr.Add(runnable(watcher.Run))); err != nil {
		return nil, fmt.Errorf("watch WorkerPools: %w", err)
	}
	return &part{ready: func() error { return seen(watcher) }}, nil
}

// seen says why the cluster is not known.
func seen(watcher *cluster.Watcher) error {
	if _, err := watcher.Observe(context.Background()); err != nil {
		return fmt.Errorf("nodes and pods: %w", err)
	}
	return nil
}

// newOwner names this run of this process.
func newOwner() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this replica: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// poolBuilder makes what a pool consists of.
type poolBuilder struct {
	client    kubernetes.Interface
	manager   ctrl.Manager
	sources   *sourceOptions
	servers   *promapi.Clients
	providers provider.Set
	store     state.Store
	webhook   *report.Webhook
	reports   *report.CostReports // nil: none
	traces    trace.TracerProvider
	told      *report.Metrics

	cluster string // its id, "" until it has been asked for
}

// clusterID tells this cluster from all others: the UID of the namespace that every cluster has and none can lose.
func (b *poolBuilder) clusterID(ctx context.Context) (string, error) {
	if b.cluster == "" {
		namespace, err := b.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("tell this cluster from others: %w", err)
		}
		b.cluster = string(namespace.UID)
	}
	return b.cluster, nil
}

func (b *poolBuilder) build(ctx context.Context, pool *v1alpha1.WorkerPool) (controller.Parts, error) {
	var parts controller.Parts
	var errs [4]error
	parts.Store, errs[0] = b.buildStore(ctx, pool)
	errs[1] = b.addProvider(ctx, pool, &parts)
	errs[2] = b.addSignals(pool, &parts)
	errs[3] = b.addReporter(ctx, pool, &parts)
	return parts, errors.Join(errs[:]...)
}

func (b *poolBuilder) buildStore(ctx context.Context, pool *v1alpha1.WorkerPool) (state.Store, error) {
	table := pool.Spec.State.DynamoDB
	if table == nil {
		return b.store, nil
	}
	cluster, err := b.clusterID(ctx)
	if err != nil {
		return nil, err
	}
	store, err := dynamodb.Connect(ctx, *table, regionOf(pool), cluster)
	if err != nil {
		return nil, fmt.Errorf("state.dynamodb: %w", err)
	}
	return store, nil
}

func (b *poolBuilder) addProvider(ctx context.Context, pool *v1alpha1.WorkerPool, parts *controller.Parts) error {
	built, err := b.providers.Build(ctx, pool)
	if err != nil {
		return err
	}
	parts.Provider, parts.Notices = built.Provider, built.Notices
	if built.Run != nil {
		parts.Run = append(parts.Run, built.Run)
	}
	return nil
}

func (b *poolBuilder) addSignals(pool *v1alpha1.WorkerPool, parts *controller.Parts) error {
	o := signal.OptionsOf(&pool.Spec)
	o.DefaultAddress, o.Servers = b.sources.prometheus.url, b.servers
	set, err := signal.New(o)
	if err != nil {
		return err
	}
	parts.Signals = set
	return nil
}

func (b *poolBuilder) addReporter(ctx context.Context, pool *v1alpha1.WorkerPool, parts *controller.Parts) error {
	o := report.Options{
		Client: b.manager.GetClient(), Events: b.manager.GetEventRecorder("foresail"),
		Metrics: b.told, Webhook: b.webhook, CostReports: b.reports, Traces: b.traces,
	}
	if namespace := pool.Spec.CloudWatchNamespace; namespace != "" {
		loaded, err := config.LoadDefaultConfig(ctx, inRegionOf(pool))
		if err != nil {
			return fmt.Errorf("cloudWatchNamespace: set up the AWS SDK: %w", err)
		}
		o.CloudWatch = &report.CloudWatch{Client: cloudwatch.NewFromConfig(loaded), Namespace: namespace}
	}
	reporter := report.New(pool.Name, o)
	parts.Reporter, parts.Run = reporter, append(parts.Run, reporter.Run)
	return nil
}

// regionOf returns the region of a pool's instances, "" outside of AWS.
func regionOf(pool *v1alpha1.WorkerPool) string {
	if _, spec := pool.Spec.Provider.Selected(); spec != nil {
		return spec.AWSRegion()
	}
	return ""
}

// inRegionOf has the AWS SDK use the region of a pool's instances, its own if there is none.
func inRegionOf(pool *v1alpha1.WorkerPool) func(*config.LoadOptions) error {
	if region := regionOf(pool); region != "" {
		return config.WithRegion(region)
	}
	return func(*config.LoadOptions) error { return nil }
}

const (
	costReportFlag = "nodepool-cost-report"
	costPricesFlag = "prices"
	// leastCostReport is the shortest time between two reports.
	leastCostReport = time.Hour
)

// costReportOptions are the flags of reports that are sent regularly.
type costReportOptions struct {
	every      time.Duration // 0: none are sent
	pricesFile string
	prices     prices.Prices
}

func (o *costReportOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.every, costReportFlag, 0,
		"Period of cost reports to the webhook, as foresail cost makes them, such as 168h: Mondays at 0:00 UTC. It needs --prometheus. 0 sends none.")
	fs.StringVar(&o.pricesFile, costPricesFlag, "",
		"File with the prices of instance types, as foresail cost workerpool --help describes it, for cost reports and for WorkerPools with requirements. Without it reports have hours only, and prices of EC2 are asked of AWS.")
}

// validate checks the file of prices too. Reports need a webhook to be sent to and a Prometheus server to be made from.
func (o *costReportOptions) validate(enabled bool, webhookFile, prometheusURL string) error {
	_, err := cli.ReadPrices(costPricesFlag, o.pricesFile)
	errs := []error{err}
	if o.pricesFile != "" && !enabled {
		errs = append(errs, cli.BadFlag(costPricesFlag, fmt.Sprintf("%q", o.pricesFile),
			"left out unless --enable has "+enableNodePool))
	}
	if o.every == 0 {
		return errors.Join(errs...)
	}
	if o.every < leastCostReport {
		errs = append(errs, cli.BadFlag(costReportFlag, o.every, "0, or a duration of at least 1h, such as 168h"))
	}
	for _, need := range []struct {
		there bool
		what  string
	}{
		{enabled, "--enable has " + enableNodePool},
		{webhookFile != "", "--notify-webhook-url-file is given, which says where reports go"},
		{prometheusURL != "", "--" + prometheusFlag + " is given, which says where the past is known"},
	} {
		if !need.there {
			errs = append(errs, cli.BadFlag(costReportFlag, o.every, "left out unless "+need.what))
		}
	}
	return errors.Join(errs...)
}

// complete loads the file of prices.
func (o *costReportOptions) complete() error {
	usd, err := cli.ReadPrices(costPricesFlag, o.pricesFile)
	o.prices = usd
	return err
}

// build returns what makes the reports, nil if none are desired.
func (o *costReportOptions) build(url string, servers *promapi.Clients) (*report.CostReports, error) {
	if o.every == 0 {
		return nil, nil
	}
	source, err := costSource(url, servers)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", costReportFlag, err)
	}
	return &report.CostReports{Every: o.every,
		Make: func(ctx context.Context, pool string, to time.Time) (string, error) {
			h, err := cost.Read(ctx, source, pool, to, o.every)
			if err != nil {
				return "", err
			}
			return cost.Summary(cost.Of(h, o.prices)), nil
		}}, nil
}

// costSource returns the server at a URL.
func costSource(url string, servers *promapi.Clients) (cost.Source, error) {
	api, err := servers.API(url)
	if err != nil {
		return cost.Source{}, err
	}
	return cost.Source{API: api, Address: url, Step: cost.DefaultStep}, nil
}
