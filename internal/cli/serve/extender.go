package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/extender/poolintent"
	"github.com/foresail/foresail/adapter/scheduler/nodeusage"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/localaddr"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/objectcache"
	"github.com/foresail/foresail/internal/servertls"
	"github.com/foresail/foresail/nodepool/drain"
)

const (
	// extenderFlags is what the names of all flags of the extender begin with.
	extenderFlags = "extender-"
	// extenderCAFlag and extenderNamesFlag have an effect together.
	extenderCAFlag    = extenderFlags + "client-ca-file"
	extenderNamesFlag = extenderFlags + "client-names"
	// mostSteps is how many readings ahead a prediction may be.
	mostSteps = 1000
	// knownWithin is how long a start waits for what nodes use, and for WorkerPools: there is an answer without either.
	knownWithin = time.Minute
)

// extenderOptions are the flags of the part that answers kube-scheduler.
type extenderOptions struct {
	address                     string
	certFile, keyFile, clientCA string
	clientNames                 []string
	allowAnonymous              bool

	rules    extender.Rules
	horizon  time.Duration
	interval time.Duration
	queries  nodeQueries

	flags *pflag.FlagSet // that all of these are of
}

// nodeQueries is what Prometheus is asked for the use of nodes.
type nodeQueries struct{ cpu, memory, label string }

// Queries that flags are explained by.
const (
	exampleCPU    = `sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))`
	exampleMemory = `sum by (node) (last_over_time(container_memory_working_set_bytes{id="/"}[1m]))`
)

func (o *extenderOptions) addFlags(fs *pflag.FlagSet) {
	o.flags, o.rules = fs, extender.DefaultRules()
	fs.StringVar(&o.address, "extender-address", "127.0.0.1:9443", "Address to listen on for kube-scheduler, over HTTPS. One that is not on loopback needs --extender-client-ca-file or --extender-allow-anonymous.")
	fs.StringVar(&o.certFile, "extender-tls-cert-file", "", "File with the certificate of that address, read again when it changes; empty makes one at start, signed by itself.")
	fs.StringVar(&o.keyFile, "extender-tls-private-key-file", "", "File with the private key of that certificate.")
	fs.StringVar(&o.clientCA, extenderCAFlag, "", "File with the authorities of client certificates; empty asks for no certificate.")
	fs.StringSliceVar(&o.clientNames, extenderNamesFlag, []string{extender.DefaultClientName}, "Names of which a client certificate "+
		"needs one, compared exactly: a DNS name of it, or its common name if it has no DNS names.")
	fs.BoolVar(&o.allowAnonymous, "extender-allow-anonymous", false, "Answer anyone who can reach the address, without a client certificate. For an address that a NetworkPolicy closes to all but the scheduler.")
	fs.Float64Var(&o.rules.Target, "extender-pack-target", o.rules.Target, "Share of a node, by its predicted use, up to which fuller nodes are preferred; above it emptier ones are.")
	fs.Float64Var(&o.rules.MemoryLimit, "extender-memory-limit", o.rules.MemoryLimit, "Share of a node's allocatable memory: a node predicted to use more is filtered. 0 is no limit.")
	fs.Float64Var(&o.rules.CPULimit, "extender-cpu-limit", o.rules.CPULimit, "Share of a node's allocatable CPU: a node predicted to use more is filtered. 0 is no limit.")
	fs.DurationVar(&o.rules.WarmUp, "extender-warm-up", o.rules.WarmUp, "How long a new node is scored lower than others; 0 is not at all.")
	fs.DurationVar(&o.rules.MaxWait, "extender-max-wait", o.rules.MaxWait, "How long a pod that no node fits waits for a WorkerPool to grow before the limits are ignored for it; 0 is no wait.")
	fs.DurationVar(&o.horizon, "extender-horizon", 2*time.Minute, "How far ahead the use of nodes is predicted.")
	fs.DurationVar(&o.interval, "extender-metrics-interval", 15*time.Second, "How often the use of nodes is read.")
	fs.StringVar(&o.queries.cpu, "extender-cpu-query", "", "PromQL for the cores that each node uses, sent to --prometheus-url, such as "+quoted(exampleCPU)+". Without it metrics.k8s.io is read.")
	fs.StringVar(&o.queries.memory, "extender-memory-query", "", "PromQL for the bytes of memory that each node uses, such as "+quoted(exampleMemory)+".")
	fs.StringVar(&o.queries.label, "extender-node-label", nodeusage.DefaultNodeLabel, "Label of both results that holds the name or an address of a Node, with or without a port.")
}

// start wires the extender. It listens from then on. uses is nil without the adapter.
func (o *extenderOptions) start(mgr ctrl.Manager, watches *feeds, sources *sourceOptions, uses *predictedmetric.PodUses) (*part, error) {
	client, err := newObjectClient(mgr)
	if err != nil {
		return nil, err
	}
	p, log := &part{}, mgr.GetLogger().WithName("extender")
	names := newNodeNames(watches.nodes)
	loads, err := o.newNodeLoads(mgr, names, sources)
	if err != nil {
		return nil, err
	}
	pools := poolintent.New(mgr.GetCache(), time.Now)
	options := extender.Options{
		Client: client, Nodes: watches.nodes, Pods: watches.pods, Forecasts: loads, Pools: pools, RemovalMark: drain.Mark,
		Rules: o.rules, Now: time.Now, Registry: metrics.Registry,
	}
	if uses != nil {
		options.Workloads, p.run = uses, append(p.run, uses.Run)
	}
	e, err := extender.New(options)
	if err != nil {
		return nil, err
	}
	server, err := extender.NewServer(extender.ServerOptions{
		Address: o.address, CertFile: o.certFile, KeyFile: o.keyFile, ClientCAFile: o.clientCA, ClientNames: o.clientNames,
		Registry: metrics.Registry,
	}, e.Handler())
	if err != nil {
		return nil, o.inFlags(err)
	}
	if err := mgr.AddMetricsServerExtraHandler(extender.ExplainPath, e.ExplainHandler()); err != nil {
		return nil, fmt.Errorf("serve what explain asks for: %w", err)
	}
	mgr.GetLogger().Info("Answering kube-scheduler", "address", server.Addr(), "cluster", mgr.GetConfig().Host)
	begun := time.Now()
	p.ready = func() error {
		if time.Since(begun) > knownWithin {
			return e.Ready()
		}
		return errors.Join(e.Ready(), loads.Ready(), pools.Ready())
	}
	for _, run := range []func(context.Context) error{server.Run, e.Run, loads.Run, pools.Run} {
		p.run = append(p.run, func(ctx context.Context) error { return run(klog.NewContext(ctx, log)) })
	}
	return p, nil
}

// newNodeLoads makes what reads and predicts the use of nodes.
func (o *extenderOptions) newNodeLoads(mgr ctrl.Manager, names *nodeNames, sources *sourceOptions) (*nodeusage.Forecaster, error) {
	source, err := o.newNodeSource(mgr, names, sources)
	if err != nil {
		return nil, err
	}
	return nodeusage.New(o.loadOptions(source, names))
}

// loadOptions say how nodes are read. Which Nodes there are tells those of one name apart, whatever the source.
func (o *extenderOptions) loadOptions(source nodeusage.Source, names *nodeNames) nodeusage.Options {
	return nodeusage.Options{
		Source: source, Nodes: names.all, Interval: o.interval, Horizon: o.horizon, StaleAfter: o.rules.StaleAfter,
		Now: time.Now, Registry: metrics.Registry,
	}
}

func (o *extenderOptions) newNodeSource(mgr ctrl.Manager, names *nodeNames, sources *sourceOptions) (nodeusage.Source, error) {
	if o.queries.given() {
		api, err := sources.prometheus.clients().API(sources.prometheus.url)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-url: %w", err)
		}
		return nodeusage.NewPrometheus(nodeusage.PrometheusOptions{
			API: api, Address: sources.prometheus.url, CPUQuery: o.queries.cpu, MemoryQuery: o.queries.memory, NodeLabel: o.queries.label,
			Nodes: names.all, Interval: o.interval, Timeout: sources.prometheus.timeout,
		}), nil
	}
	usage, err := metricsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for metrics.k8s.io: %w", err)
	}
	return &nodeusage.MetricsAPI{Client: usage.MetricsV1beta1()}, nil
}

// validateClients refuses to answer strangers: they could read the predicted use of nodes, and have pods assumed on nodes.
func (o *extenderOptions) validateClients() error {
	if o.clientCA != "" || o.allowAnonymous || localaddr.Loopback(o.address) { // an address that is none is refused elsewhere too
		return nil
	}
	return cli.BadFlag("extender-address", fmt.Sprintf("%q", o.address), "a loopback address, unless schedulers are authenticated (--extender-client-ca-file) or "+
		"nobody needs to be (--extender-allow-anonymous): anybody who can reach it could have pods kept off nodes and WorkerPools launch nodes")
}

// flagsOfFields are the flags that fields of extender.ServerOptions and extender.Rules are set by.
func flagsOfFields() map[string]string {
	return map[string]string{
		"Address": "extender-address", "CertFile": "extender-tls-cert-file", "KeyFile": "extender-tls-private-key-file",
		"ClientCAFile": extenderCAFlag, "ClientNames": extenderNamesFlag,
		"Target": "extender-pack-target", "MemoryLimit": "extender-memory-limit", "CPULimit": "extender-cpu-limit",
		"WarmUp": "extender-warm-up", "MaxWait": "extender-max-wait",
	}
}

// inFlags says errors of the extender's options, joined ones too, in terms of flags. What no flag sets stays as it is: it is not
// the user's to mend.
func (o *extenderOptions) inFlags(err error) error {
	return eachJoined(err, o.inFlag)
}

func (o *extenderOptions) inFlag(err error) error {
	var option *extender.OptionError
	if !errors.As(err, &option) {
		return err
	}
	flag, ok := flagsOfFields()[option.Field]
	if !ok {
		return err
	}
	want := option.Want
	if option.Err != nil {
		want = fmt.Sprintf("%s: %v", want, option.Err)
	}
	return cli.BadFlag(flag, fmt.Sprintf("%q", option.Value), want)
}

// given tells whether Prometheus is asked.
func (q nodeQueries) given() bool { return q.cpu != "" || q.memory != "" }

// validate also reads the files that flags name.
func (o *extenderOptions) validate(enabled bool, prometheusURL string) error {
	if !enabled {
		return refuseFlags(o.flags, extenderFlags, "left out unless --enable has "+enableExtender)
	}
	return errors.Join(o.validateServing(), o.inFlags(o.rules.Validate()), o.validateReading(), o.validateQueries(prometheusURL))
}

func (o *extenderOptions) validateServing() error {
	var errs []error
	if err := checkAddress(o.address); err != nil {
		errs = append(errs, cli.BadFlag("extender-address", fmt.Sprintf("%q", o.address), fmt.Sprintf("a host and a port, such as :9443 or 127.0.0.1:9443: %v", err)))
	}
	errs = append(errs, checkKeyPair("extender-tls-cert-file", o.certFile, "extender-tls-private-key-file", o.keyFile), o.validateClients())
	errs = append(errs, o.validateAuthentication())
	return errors.Join(errs...)
}

func (o *extenderOptions) validateAuthentication() error {
	if o.clientCA == "" {
		return refuseNames(o.flags, extenderNamesFlag, extenderCAFlag)
	}
	var errs []error
	if err := servertls.CheckAuthorities(o.clientCA); err != nil {
		errs = append(errs, cli.BadFlag(extenderCAFlag, fmt.Sprintf("%q", o.clientCA), fmt.Sprintf("a file with certificates in PEM: %v", err)))
	}
	if err := servertls.CheckNames(o.clientNames); err != nil {
		accept := fmt.Sprintf("the names of schedulers' certificates, such as %s: %v", extender.DefaultClientName, err)
		errs = append(errs, cli.BadFlag(extenderNamesFlag, fmt.Sprintf("%q", strings.Join(o.clientNames, ",")), accept))
	}
	return errors.Join(errs...)
}

// Predictions are dropped once they are older than extender.Rules.StaleAfter, so reading less often than that would mean
// to have none.
func (o *extenderOptions) validateReading() error {
	var errs []error
	if most := o.rules.StaleAfter / 3; o.interval < time.Second || o.interval > most {
		errs = append(errs, cli.BadFlag("extender-metrics-interval", o.interval, fmt.Sprintf("from 1s to %s", most)))
	}
	if most := min(time.Hour, mostSteps*o.interval); o.horizon < o.interval || o.horizon > most {
		errs = append(errs, cli.BadFlag("extender-horizon", o.horizon, fmt.Sprintf("from --extender-metrics-interval to %s", most)))
	}
	return errors.Join(errs...)
}

// validateQueries does not judge PromQL: the server will, and its words are told.
func (o *extenderOptions) validateQueries(prometheusURL string) error {
	var errs []error
	given := []struct{ flag, value, such string }{
		{"extender-cpu-query", o.queries.cpu, exampleCPU}, {"extender-memory-query", o.queries.memory, exampleMemory},
	}
	for i, q := range given {
		switch other := given[1-i]; {
		case q.value == "" && other.value != "":
			errs = append(errs, cli.BadFlag(q.flag, `""`, fmt.Sprintf("a query in PromQL, such as %s, or empty together with --%s", quoted(q.such), other.flag)))
		case q.value != "" && prometheusURL == "":
			errs = append(errs, cli.BadFlag(q.flag, fmt.Sprintf("%q", q.value), "left out unless --prometheus-url says whom to ask"))
		case q.value != "" && nodeusage.LookBack(q.value) == 0:
			errs = append(errs, cli.BadFlag(q.flag, fmt.Sprintf("%q", q.value), "a query with a range, such as "+quoted(q.such)+": without one what was read five minutes ago passes for new"))
		}
	}
	switch label := o.flags.Lookup("extender-node-label"); {
	case o.queries.given() && o.queries.label == "":
		errs = append(errs, cli.BadFlag(label.Name, `""`, "the name of a label, such as node"))
	case !o.queries.given() && label.Changed:
		errs = append(errs, cli.BadFlag(label.Name, fmt.Sprintf("%q", o.queries.label), "left out unless --extender-cpu-query and --extender-memory-query are given"))
	}
	return errors.Join(errs...)
}

// quoted is how a query is told in a sentence, as it has quotes of its own.
func quoted(query string) string { return "'" + query + "'" }

// nodeNames knows what the Nodes of the cluster can be named by.
type nodeNames struct {
	mu    sync.Mutex
	table *objectcache.Table[string, *corev1.Node, nodequery.Node]
}

// newNodeNames returns names that are kept up to date while the feed runs.
func newNodeNames(nodes *objectcache.Feed) *nodeNames {
	n := &nodeNames{}
	n.table = objectcache.New(objectcache.Options[string, *corev1.Node, nodequery.Node]{
		What: "nodes", Lock: &n.mu, Now: time.Now, Key: func(node *corev1.Node) string { return node.Name },
		Keep: func(node *corev1.Node) (nodequery.Node, bool) { return nodequery.Of(node), true },
	})
	nodes.Subscribe(n.table)
	return n
}

// all returns the Nodes there are, nil while that is not known. It does not block.
func (n *nodeNames) all() []nodequery.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table.State(time.Now()) != nil {
		return nil
	}
	nodes := make([]nodequery.Node, 0, len(n.table.Rows()))
	for _, node := range n.table.Rows() {
		nodes = append(nodes, node)
	}
	return nodes
}
