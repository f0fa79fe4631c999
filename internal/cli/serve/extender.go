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
	// extenderNamesFlag has an effect where the folder of extenderCertFlag has authorities.
	extenderCertFlag  = extenderFlags + "cert-dir"
	extenderNamesFlag = extenderFlags + "client-names"
	// nodesReadEvery is the resolution of metrics-server: nothing changes in between.
	nodesReadEvery = 15 * time.Second
	// nodesAhead is the time in which a pod that starts shows what it uses.
	nodesAhead = 2 * time.Minute
	// knownWithin is how long a start waits for what nodes use, and for WorkerPools: there is an answer without either.
	knownWithin = time.Minute
)

// extenderOptions are the flags of the part that answers kube-scheduler.
type extenderOptions struct {
	address     string
	certDir     string
	clientNames []string
	anonymous   *anonymousOptions

	rules    extender.Rules
	horizon  time.Duration
	interval time.Duration
	queries  nodeQueries

	flags *pflag.FlagSet // that all of these are of
}

// nodeQueries is what Prometheus is asked for the use of nodes.
type nodeQueries struct{ cpu, memory string }

// Queries that flags are explained by.
const (
	exampleCPU    = `sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))`
	exampleMemory = `sum by (node) (last_over_time(container_memory_working_set_bytes{id="/"}[1m]))`
)

func (o *extenderOptions) addFlags(fs *pflag.FlagSet) {
	o.flags, o.rules = fs, extender.DefaultRules()
	fs.StringVar(&o.address, "extender-address", "127.0.0.1:9443", "Address to listen on for kube-scheduler, over "+
		"HTTPS. One that is not on loopback needs ca.crt in --extender-cert-dir, or --allow-anonymous=extender.")
	fs.StringVar(&o.certDir, extenderCertFlag, "", "Folder with the certificate of that address, tls.crt, and its "+
		"key, tls.key, read again when they change; empty makes a certificate at start, signed by itself. "+
		"If it has ca.crt too, schedulers need a client certificate of these authorities.")
	fs.StringSliceVar(&o.clientNames, extenderNamesFlag, []string{extender.DefaultClientName},
		"Names of which a client certificate "+
			"needs one, compared exactly: a DNS name of it, or its common name if it has no DNS names.")
	fs.Float64Var(&o.rules.Target, "extender-pack-target", o.rules.Target,
		"Share of a node, by its predicted use, up to which fuller nodes are preferred; above it emptier ones are.")
	fs.Float64Var(&o.rules.MemoryLimit, "extender-memory-limit", o.rules.MemoryLimit,
		"Share of a node's allocatable memory: a node predicted to use more is filtered. 0 is no limit.")
	fs.Float64Var(&o.rules.CPULimit, "extender-cpu-limit", o.rules.CPULimit,
		"Share of a node's allocatable CPU: a node predicted to use more is filtered. 0 is no limit.")
	o.horizon, o.interval = nodesAhead, nodesReadEvery
	fs.StringVar(&o.queries.cpu, "extender-cpu-query", "", "PromQL for the cores that each node uses, sent to "+
		"--prometheus, such as "+quoted(exampleCPU)+". "+
		"Its label node has the name or an address of a Node, with or without a port. Without the query "+
		"metrics.k8s.io is read.")
	fs.StringVar(&o.queries.memory, "extender-memory-query", "",
		"PromQL for the bytes of memory that each node uses, such as "+quoted(exampleMemory)+".")
}

func (o *extenderOptions) addTestOptions(fs *pflag.FlagSet) {
	fs.DurationVar(&o.rules.WarmUp, "extender-warm-up", o.rules.WarmUp, "How long a new node is scored lower than "+
		"others.")
	fs.DurationVar(&o.rules.MaxWait, "extender-max-wait", o.rules.MaxWait, "How long a pod that no node fits "+
		"waits for a WorkerPool to grow.")
	fs.DurationVar(&o.horizon, "extender-horizon", o.horizon, "How far ahead the use of nodes is predicted.")
	fs.DurationVar(&o.interval, "extender-metrics-interval", o.interval, "How often the use of nodes is read.")
}

// clientCA returns the file with the authorities of clients, "" if they need no certificate.
func (o *extenderOptions) clientCA() string { return authoritiesIn(o.certDir) }

// start wires the extender. It listens from then on. uses is nil without the adapter.
func (o *extenderOptions) start(mgr ctrl.Manager, watches *feeds, sources *sourceOptions,
	uses *predictedmetric.PodUses) (*part, error) {
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
		Client: client, Nodes: watches.nodes, Pods: watches.pods, Forecasts: loads, Pools: pools,
		RemovalMark: drain.Mark,
		Rules:       o.rules, Now: time.Now, Registry: metrics.Registry,
	}
	if uses != nil {
		options.Workloads, p.run = uses, append(p.run, uses.Run)
	}
	e, err := extender.New(options)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := certificateIn(o.certDir)
	server, err := extender.NewServer(extender.ServerOptions{
		Address: o.address, CertFile: certFile, KeyFile: keyFile, ClientCAFile: o.clientCA(),
		ClientNames: o.clientNames,
		Registry:    metrics.Registry,
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
func (o *extenderOptions) newNodeLoads(mgr ctrl.Manager, names *nodeNames,
	sources *sourceOptions) (*nodeusage.Forecaster, error) {
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

func (o *extenderOptions) newNodeSource(mgr ctrl.Manager, names *nodeNames,
	sources *sourceOptions) (nodeusage.Source, error) {
	if o.queries.given() {
		api, err := sources.prometheus.clients().API(sources.prometheus.url)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", prometheusFlag, err)
		}
		return nodeusage.NewPrometheus(nodeusage.PrometheusOptions{
			API: api, Address: sources.prometheus.url, CPUQuery: o.queries.cpu, MemoryQuery: o.queries.memory,
			NodeLabel: nodeusage.DefaultNodeLabel,
			Nodes:     names.all, Interval: o.interval, Timeout: queryTimeout,
		}), nil
	}
	usage, err := metricsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for metrics.k8s.io: %w", err)
	}
	return &nodeusage.MetricsAPI{Client: usage.MetricsV1beta1()}, nil
}

// validateClients refuses to answer strangers: they could read the predicted use of nodes, and have
// pods assumed on nodes.
func (o *extenderOptions) validateClients() error {
	if o.clientCA() != "" || o.anonymous.allows(anonymousExtender) || localaddr.Loopback(o.address) {
		// an address that is none is refused elsewhere too
		return nil
	}
	return cli.BadFlag("extender-address", fmt.Sprintf("%q", o.address), "a loopback address, unless schedulers "+
		"are authenticated (ca.crt in --extender-cert-dir) or "+
		"anonymous clients are allowed (--allow-anonymous=extender): anybody who can reach it could have pods kept off nodes "+
		"and WorkerPools launch nodes")
}

// flagsOfFields are the flags that fields of extender.ServerOptions and extender.Rules are set by.
func flagsOfFields() map[string]string {
	return map[string]string{
		"Address": "extender-address", "CertFile": extenderCertFlag, "KeyFile": extenderCertFlag,
		"ClientCAFile": extenderCertFlag, "ClientNames": extenderNamesFlag,
		"Target": "extender-pack-target", "MemoryLimit": "extender-memory-limit", "CPULimit": "extender-cpu-limit",
	}
}

// inFlags says errors of the extender's options, joined ones too, in terms of flags. What no flag
// sets stays as it is: it is not the user's to mend.
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
	want := option.Accept
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
	return errors.Join(o.validateServing(), o.inFlags(o.rules.Validate()), o.validateQueries(prometheusURL))
}

func (o *extenderOptions) validateServing() error {
	var errs []error
	if err := checkAddress(o.address); err != nil {
		errs = append(errs, cli.BadFlag("extender-address", fmt.Sprintf("%q", o.address),
			fmt.Sprintf("a host and a port, such as :9443 or 127.0.0.1:9443: %v", err)))
	}
	errs = append(errs, checkCertDir(extenderCertFlag, o.certDir), o.validateClients())
	errs = append(errs, o.validateAuthentication())
	return errors.Join(errs...)
}

func (o *extenderOptions) validateAuthentication() error {
	authorities := o.clientCA()
	if authorities == "" {
		return refuseNames(o.flags, extenderNamesFlag, extenderCertFlag, "")
	}
	var errs []error
	if err := servertls.CheckAuthorities(authorities); err != nil {
		errs = append(errs, cli.BadFlag(extenderCertFlag, fmt.Sprintf("%q", authorities), fmt.Sprintf("a file "+
			"with certificates in PEM: %v", err)))
	}
	if err := servertls.CheckNames(o.clientNames); err != nil {
		accept := fmt.Sprintf("the names of schedulers' certificates, such as %s: %v", extender.DefaultClientName, err)
		errs = append(errs, cli.BadFlag(extenderNamesFlag, fmt.Sprintf("%q", strings.Join(o.clientNames, ",")), accept))
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
			errs = append(errs, cli.BadFlag(q.flag, `""`,
				fmt.Sprintf("a query in PromQL, such as %s, or empty together with --%s", quoted(q.such), other.flag)))
		case q.value != "" && prometheusURL == "":
			errs = append(errs, cli.BadFlag(q.flag, fmt.Sprintf("%q", q.value), "left out unless --"+
				prometheusFlag+" says whom to ask"))
		case q.value != "" && nodeusage.LookBack(q.value) == 0:
			errs = append(errs, cli.BadFlag(q.flag, fmt.Sprintf("%q", q.value),
				"a query with a range, such as "+quoted(q.such)+
					": without one what was read five minutes ago passes for new"))
		}
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
