package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/door/dashboard"
	"github.com/foresail/foresail/adapter/door/dashboard/eventview"
	"github.com/foresail/foresail/adapter/door/dashboard/metricview"
	"github.com/foresail/foresail/adapter/door/dashboard/page"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/httpserve"
	"github.com/foresail/foresail/internal/lab/play/whatif"
	"github.com/foresail/foresail/nodepool/poolview"
	"github.com/foresail/foresail/nodepool/prices"
)

const (
	// dashboardAccount is the ServiceAccount that replicas answer.
	dashboardAccount = "foresail-dashboard"
	// adapterPods selects the pods that may forecast for pods, as the manifests name them.
	adapterPods = "app.kubernetes.io/name=foresail"
)

func newDashboardCommand(now func() time.Time) *cobra.Command {
	k := &cli.Connection{}
	access := &replicaAccess{account: dashboardAccount}
	c := &cobra.Command{
		Use:   "dashboard [--port PORT] [--prices FILE]",
		Short: "Show in a browser what is forecast and decided for every PredictedMetric and worker pool",
		Long: `Dashboard serves a page at an address of this machine that only this machine can reach, and prints
its URL, until it is interrupted. The URL has a token, without which nothing is shown. The page
changes nothing.

It lists all PredictedMetrics, those in trouble first, with their load, replicas and decisions, and
shows for each of them the load and what was forecast for it, the replicas within their bounds, and
the reason of every decision, at any time of the last hour.

What if: it plays the last hour of a PredictedMetric again with another threshold, other limits,
startup time or lateness, on this machine, as foresail backtest does.

It also shows the WorkerPools with their nodes, open actions and decisions, as foresail explain
workerpool does, and the newest Events of each object. The command reads them itself, with your
rights of kubectl get. Where no replica shows PredictedMetrics, the page opens with the WorkerPools,
or with Pods if there are none but the scheduler extender runs, and says why; a replica that comes
later is found.

Of a pod it shows what foresail explain pod prints, with the same rights: which nodes the scheduler
extender filtered for it and why, and how it scored the others.

All else comes from a replica of Foresail that runs with --dashboard, as manifests/components/dashboard
has it. The command reaches it through the API server, as kubectl port-forward does. It answers the
ServiceAccount foresail-dashboard, for which the command asks for tokens of ten minutes. It needs
the Role foresail-dashboard. With --server it asks one replica at its --metrics-address: over HTTPS
with such a token too, over HTTP one that was started with --allow-anonymous=metrics.`,
		Example: `  foresail dashboard

  # At the same address each time, such as for a tunnel of your own to this machine
  foresail dashboard --port 8090

  # A replica that runs outside of the cluster
  foresail dashboard --server https://foresail.example.com:8443`,
		Args: cli.NoArguments,

		DisableFlagsInUseLine: true,
	}
	k.AddFlags(c)
	pricesFile := c.Flags().String("prices", "",
		"`file` with the prices of instance types, to show what an hour of a worker pool costs; foresail cost workerpool --help describes it")
	port := c.Flags().Uint16("port", 0, "`port` of 127.0.0.1 to serve the page at; 0 takes one that is free")
	access.addFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := access.validate(); err != nil {
			return err
		}
		usd, err := cli.ReadPrices("prices", *pricesFile)
		if err != nil {
			return err
		}
		r := &dashboardReplica{replicaAccess: access}
		if r.config, r.client, err = k.Clientset(); err != nil && !access.anonymous() {
			return err
		}
		defer r.leave()
		config, objects, unreachable := k.Connect()
		pools := newPoolView(config, objects, unreachable, usd, now)
		events := &eventview.View{Cluster: pools.Cluster, Failure: pools.Failure, Now: now}
		played := whatif.NewView(r.history, func(ctx context.Context,
			metric types.NamespacedName) (v1alpha1.PredictedMetricSpec, error) {
			return specOf(ctx, objects, unreachable, metric)
		})
		metrics := &metricview.View{Objects: objects, Failure: unreachable}
		pods := newPodPage(k, access, now)
		return serveDashboard(c, r, pools, pods, *port, page.Local{
			Cluster: clusterOf(k, config, access.server),
			Metric:  func(ctx context.Context, metric types.NamespacedName) any { return metrics.Look(ctx, metric) },
			Pools:   func(ctx context.Context) any { return pools.List(ctx) },
			Pool:    func(ctx context.Context, name string) any { return pools.Detail(ctx, name) },
			WhatIf: func(ctx context.Context, metric types.NamespacedName, values url.Values) any {
				return played.Answer(ctx, metric, values)
			},
			Events: func(ctx context.Context, kind string, object types.NamespacedName) any {
				return events.List(ctx, kind, object)
			},
			Pods: pods.list,
			Pod:  pods.explain,
		})
	}
	return c
}

// clusterOf names what the page shows: the context of the kubeconfig and the API server, or the
// replica of --server.
func clusterOf(k *cli.Connection, config *rest.Config, server string) page.Cluster {
	if server != "" {
		return page.Cluster{Name: server, Server: server}
	}
	if config == nil {
		return page.Cluster{}
	}
	return page.Cluster{Name: cmp.Or(k.ContextName(), config.Host), Server: config.Host}
}

// newPoolView reads WorkerPools with the rights of the user.
func newPoolView(config *rest.Config, objects client.Client, unreachable error, usd prices.Prices,
	now func() time.Time) *poolview.View {
	if unreachable != nil {
		return &poolview.View{Failure: unreachable, Now: now}
	}
	config.QPS, config.Burst = 50, 100 // as kubectl: a cluster is many pages
	nodes, err := kubernetes.NewForConfig(config)
	return &poolview.View{Objects: objects, Cluster: nodes, Failure: err, Prices: usd, Now: now}
}

// specOf returns the spec of a PredictedMetric, read with the rights of the user.
func specOf(ctx context.Context, objects client.Client, unreachable error,
	metric types.NamespacedName) (v1alpha1.PredictedMetricSpec, error) {
	var pm v1alpha1.PredictedMetric
	if unreachable != nil {
		return pm.Spec, unreachable
	}
	err := objects.Get(ctx, metric, &pm)
	return pm.Spec, err
}

// history returns what the replica has recorded of a PredictedMetric.
func (r *dashboardReplica) history(ctx context.Context, metric types.NamespacedName) ([]byte, error) {
	answer, err := r.fetch(ctx,
		dashboard.MetricsPath+"/"+url.PathEscape(metric.Namespace)+"/"+url.PathEscape(metric.Name))
	switch {
	case err != nil:
		return nil, err
	case answer.Code != http.StatusOK:
		return nil, errors.New(strings.TrimSpace(string(answer.Body)))
	}
	return answer.Body, nil
}

// serveDashboard serves the page until the context ends. It serves nothing if there is nothing to show.
func serveDashboard(c *cobra.Command, r *dashboardReplica, pools *poolview.View, pods *podPage, port uint16,
	local page.Local) error {
	ctx := c.Context()
	first, about, err := opening(ctx, r, pools, pods)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return cli.BadFlag("port", port, fmt.Sprintf("a port that is free, or 0: %v", err))
	}
	shown, err := page.New(listener.Addr(), dashboard.Path, r.fetch, local)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: shown, MaxHeaderBytes: 16 << 10, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	go httpserve.StopWith(ctx, server, listener)
	fmt.Fprintf(c.OutOrStdout(), "Open %s%s\n%s. Ctrl-C ends it.\n", shown.URL(), first, about)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// opening returns the view that is opened first, "" for that of PredictedMetrics, and what is said
// of the page. Without a replica that shows PredictedMetrics it is worker pools that are shown, if
// there are any, or pods, if the scheduler extender runs.
func opening(ctx context.Context, r *dashboardReplica, pools *poolview.View, pods *podPage) (first, about string,
	err error) {
	name, err := r.find(ctx)
	if err == nil {
		return "", fmt.Sprintf("It is for you alone, and shows what %s knows", name), nil
	}
	listing, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	shown := ""
	switch {
	case len(pools.List(listing).Pools) > 0:
		first, shown = "#workerpools", "the worker pools"
	case pods.extenderRuns(ctx):
		first, shown = "#pods", "what the scheduler extender knows of pods"
	default:
		return "", "", err
	}
	return first, fmt.Sprintf("PredictedMetrics are not shown: %v\nIt is for you alone, and shows %s", err, shown), nil
}

// dashboardReplica asks one replica for as long as it answers, and then another one: each has a
// history of its own.
type dashboardReplica struct {
	*replicaAccess
	config *rest.Config
	client kubernetes.Interface

	held heldToken

	mu     sync.Mutex // held while a replica is looked for
	chosen *dashboardConnection
}

// dashboardConnection leads to a replica until it is closed.
type dashboardConnection struct {
	name      string     // of the pod, or the URL of --server
	base      string     // of URLs
	tunnel    *podTunnel // nil for one that is reached directly
	transport *http.Transport
	close     func()
}

// find returns the name of a replica that shows something.
func (r *dashboardReplica) find(ctx context.Context) (string, error) {
	to, _, err := r.connection(ctx)
	if err != nil {
		return "", err
	}
	return to.name, nil
}

// fetch implements page.Fetch.
func (r *dashboardReplica) fetch(ctx context.Context, path string) (page.Answer, error) {
	for again := true; ; again = false {
		to, token, err := r.connection(ctx)
		if err != nil {
			return page.Answer{}, err
		}
		answer, err := to.ask(ctx, path, token)
		switch {
		case err == nil && answer.code != http.StatusUnauthorized:
			return page.Answer{Code: answer.code, Type: answer.kind, Body: answer.body}, nil
		case ctx.Err() != nil: // the browser has gone on, which says nothing of the replica
			return page.Answer{}, ctx.Err()
		case err == nil:
			err = answer.failure()
		}
		r.drop(to)
		if !again {
			return page.Answer{}, fmt.Errorf("ask %s: %w", to.name, err)
		}
	}
}

func (d *dashboardConnection) ask(ctx context.Context, path, token string) (replicaAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := fetchFrom(ctx, d.transport, d.base+path, token)
	if d.tunnel != nil {
		err = d.tunnel.explain(err)
	}
	return answer, err
}

// connection returns the replica that is asked, which has shown something, and a token that it answers.
func (r *dashboardReplica) connection(ctx context.Context) (*dashboardConnection, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	token, err := r.held.get(ctx, r.replicaAccess, r.client)
	switch {
	case err != nil:
		return nil, "", err
	case r.chosen != nil:
	case r.server != "":
		r.chosen, err = r.toServer(ctx, token)
	default:
		r.chosen, err = r.toPod(ctx, token)
	}
	if err != nil {
		return nil, "", err
	}
	return r.chosen, token, nil
}

func (r *dashboardReplica) toServer(ctx context.Context, token string) (*dashboardConnection, error) {
	transport, err := r.serverTransport()
	if err != nil {
		return nil, err
	}
	to := &dashboardConnection{name: r.server, base: strings.TrimSuffix(r.server, "/"), transport: transport,
		close: transport.CloseIdleConnections}
	if err := r.probe(ctx, to, token); err != nil {
		to.close()
		return nil, fmt.Errorf("ask %s: %w", to.name, err)
	}
	return to, nil
}

// toPod connects to the first pod, of those that have run for the longest, that has a dashboard: it
// remembers the most.
func (r *dashboardReplica) toPod(ctx context.Context, token string) (*dashboardConnection, error) {
	replicas, err := r.pods(ctx)
	if err != nil {
		return nil, err
	}
	failures := map[string]error{}
	for _, pod := range replicas {
		connection, err := r.tunnel(ctx, pod)
		if err != nil {
			failures[pod.name] = err
			continue
		}
		if err = r.probe(ctx, connection, token); err == nil {
			return connection, nil
		}
		connection.close()
		failures[pod.name] = err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		errs = append(errs, fmt.Errorf("ask the pod %s/%s: %w", r.foresail, name, failures[name]))
	}
	return nil, errors.Join(errs...)
}

// probe returns why a replica shows nothing.
func (r *dashboardReplica) probe(ctx context.Context, to *dashboardConnection, token string) error {
	answer, err := to.ask(ctx, dashboard.MetricsPath+"?limit=1", token)
	switch {
	case err != nil:
		return err
	case answer.code == http.StatusNotFound:
		return errors.New("it runs without --dashboard, which manifests/components/dashboard adds")
	case answer.code == http.StatusForbidden:
		return fmt.Errorf("%w: the ServiceAccount %s needs the ClusterRole %s", answer.failure(), r.account, r.account)
	case answer.code != http.StatusOK:
		return answer.failure()
	}
	return nil
}

// tunnel returns a connection that outlives the context, which bounds how long it takes to make it.
func (r *dashboardReplica) tunnel(ctx context.Context, pod replica) (*dashboardConnection, error) {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	tunnel, err := openTunnel(open, r.config, r.client, r.foresail, pod.name, pod.port)
	if err != nil {
		end()
		return nil, err
	}
	if !stop() { // the time is over, and so is the tunnel
		return nil, ctx.Err()
	}
	transport := tunnelTransport()
	return &dashboardConnection{name: "the pod " + r.foresail + "/" + pod.name, base: "https://" + tunnel.address,
		tunnel: tunnel, transport: transport, close: func() {
			transport.CloseIdleConnections()
			end()
		}}, nil
}

// pods are those that run Foresail, the ones that have run for the longest first.
func (r *dashboardReplica) pods(ctx context.Context) ([]replica, error) {
	list, err := r.client.CoreV1().Pods(r.foresail).List(ctx, metav1.ListOptions{LabelSelector: adapterPods})
	if err != nil {
		return nil, fmt.Errorf("find the pods of Foresail in namespace %s, for which the Role %s is: %w", r.foresail,
			r.account, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int { return startOf(&a).Compare(startOf(&b)) })
	var found []replica
	for i := range list.Items {
		pod := &list.Items[i]
		if port := portOf(pod, metricsPort); pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil &&
			port != "" {
			found = append(found, replica{pod.Name, port})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no pod in namespace %s runs Foresail (%d have its name): --foresail-namespace says where it runs, and --server asks one that is no pod",
			r.foresail, len(list.Items))
	}
	return found, nil
}

// startOf is when the container of a pod started, as far as is known.
func startOf(pod *corev1.Pod) time.Time {
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil {
			return running.StartedAt.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// drop has another replica chosen, with another token, unless that has happened already.
func (r *dashboardReplica) drop(to *dashboardConnection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chosen == to {
		r.chosen = nil
		r.held.forget()
		to.close()
	}
}

// leave closes what is open.
func (r *dashboardReplica) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chosen != nil {
		r.chosen.close()
		r.chosen = nil
	}
}
