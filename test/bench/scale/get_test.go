package scale

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
)

const (
	// blocks is how many turns each server has, of so many reads: as many each time, as a server
	// need not ask the API server who may read what was read a while ago.
	blocks, reads = 10, 1000
	// warmUps is how many reads go before a block, over connections that the last switch has left cold.
	warmUps = 200
	// hpaController is who reads external metrics in a cluster.
	hpaController = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// BenchmarkAggregatedGet reads an external metric through the API server, from Foresail with n
// PredictedMetrics and from the test adapter of the library that both are made with, which holds
// three constants. Both run throughout, with the same certificates, authentication and
// authorization, and answer in turns. A ratio is the median of those of two turns, one after the
// other: the slowest hundredth of one that something else on the machine has slowed down would be
// that of all.
func BenchmarkAggregatedGet(b *testing.B) {
	for _, n := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("metrics=%d", n), func(b *testing.B) {
			c := startCluster(b)
			p := population{apps: n, podsPerApp: 1, namespaces: min(n, 50), network: c.PodCIDR(),
				born: time.Now().Add(-time.Hour)}
			// one: to the API server each certificate is another credential
			reader, err := c.RESTConfigFor(hpaController)
			require.NoError(b, err)
			reader.QPS = -1
			ours := contender{b: b, cluster: c, reader: reader, port: feed(b, c, p).securePort}
			theirs := contender{b: b, cluster: c, reader: reader, port: startTestAdapter(b, c)}
			ours.ask = func(i int) question {
				app := p.app(i % n)
				return question{app.Namespace, "predicted_load_total", selector(b, "predictedmetric="+app.Name)}
			}
			// As many selectors as ours: a server asks the cluster about each who may use it.
			theirs.ask = func(i int) question {
				app := p.app(i % n)
				return question{app.Namespace, "my-external-metric", selector(b, "foo=bar,app!="+app.Name)}
			}
			allowReads(b, c)
			var p50, p99 quantiles // ratios
			for b.Loop() {
				for range blocks {
					their, our := theirs.block(), ours.block()
					p50.add(our.quantile(0.5) / their.quantile(0.5))
					p99.add(our.quantile(0.99) / their.quantile(0.99))
				}
			}
			ours.report("foresail")
			theirs.report("test-adapter")
			b.ReportMetric(p50.quantile(0.5), "ratio-p50")
			b.ReportMetric(p99.quantile(0.5), "ratio-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// question is one item of a metric to read.
type question struct {
	namespace, metric string
	selector          labels.Selector
}

func selector(b *testing.B, text string) labels.Selector {
	b.Helper()
	s, err := labels.Parse(text)
	require.NoError(b, err)
	return s
}

// contender is a server that answers while it is registered.
type contender struct {
	b       *testing.B
	cluster *controlplane.Cluster
	reader  *rest.Config
	port    int
	ask     func(i int) question

	asked int
	took  quantiles // µs, of each read
}

// block registers the server, warms up, reads and returns how long each read took (µs).
func (x *contender) block() *quantiles {
	require.NoError(x.b, foresail.Register(x.b.Context(), x.cluster, x.port))
	client, err := externalmetrics.NewForConfig(x.reader)
	require.NoError(x.b, err)
	require.NoError(x.b, x.untilAnswered(client))
	for range warmUps {
		require.NoError(x.b, x.read(client))
	}
	var took quantiles
	for range reads {
		begun := time.Now()
		require.NoError(x.b, x.read(client))
		took.add(float64(time.Since(begun).Nanoseconds()) / 1000)
	}
	x.took.add(took.values...)
	return &took
}

// untilAnswered waits until the API server sends requests here: the other server answers until
// then, and says that it knows no such metric. Then it lets the API server read what else it wants
// to know of an API that is new.
func (x *contender) untilAnswered(client externalmetrics.ExternalMetricsClient) error {
	limit := time.Now().Add(time.Minute)
	for {
		err := x.read(client)
		if err == nil {
			break
		}
		if time.Now().After(limit) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(3 * time.Second)
	return nil
}

func (x *contender) read(client externalmetrics.ExternalMetricsClient) error {
	q := x.ask(x.asked)
	x.asked++
	list, err := client.NamespacedMetrics(q.namespace).List(q.metric, q.selector)
	if err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("%s{%s} in %s: %d items instead of 1", q.metric, q.selector, q.namespace, len(list.Items))
	}
	return nil
}

func (x *contender) report(name string) {
	x.b.ReportMetric(x.took.quantile(0.5), name+"-p50-µs")
	x.b.ReportMetric(x.took.quantile(0.99), name+"-p99-µs")
}

// allowReads lets the HPA controller read the metrics of both; the manifests' own role is for Foresail's.
func allowReads(b *testing.B, c *controlplane.Cluster) {
	b.Helper()
	_, err := c.Apply(b.Context(), []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bench-reader}
rules: [{apiGroups: [external.metrics.k8s.io], resources: ["*"], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bench-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bench-reader}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "`+hpaController+`"}]
`))
	require.NoError(b, err)
}

// startTestAdapter runs the library's test adapter until the benchmark ends and returns its port.
// It is allowed what Foresail is allowed.
func startTestAdapter(b *testing.B, c *controlplane.Cluster) int {
	b.Helper()
	program := buildTestAdapter(b, c)
	kubeconfig, err := c.KubeconfigForServiceAccount(b.Context(), foresail.Namespace, foresail.ServiceAccount)
	require.NoError(b, err)
	cert, key, err := c.ServingCertificate(foresail.ServiceName+"."+foresail.Namespace+".svc", "localhost")
	require.NoError(b, err)
	port, err := ports.Take()
	require.NoError(b, err)
	const name = "test-adapter"
	process, err := controlplane.StartProcess(name, program, filepath.Join(c.Dir(), name+".log"), c.Dir(), []string{
		"--lister-kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig",
		kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port),
		"--tls-cert-file", cert, "--tls-private-key-file", key,
	})
	require.NoError(b, err)
	foresail.EndWith(b, name, process)
	ctx, cancel := context.WithTimeoutCause(b.Context(), time.Minute, errors.New("the test adapter does not listen"))
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", ports.Loopback(port))
		if err == nil {
			require.NoError(b, conn.Close())
			return port
		}
		select {
		case <-ctx.Done():
			b.Fatal(context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// buildTestAdapter builds the test adapter as the library has it, but for the address on which it
// would take values from anybody. The go command lets no file of a module be replaced, so it is
// given a copy as one of this repository.
func buildTestAdapter(b *testing.B, c *controlplane.Cluster) string {
	b.Helper()
	root, err := controlplane.Root()
	require.NoError(b, err)
	list := exec.CommandContext(b.Context(), "go", "list", "-f", "{{.Dir}}",
		"sigs.k8s.io/custom-metrics-apiserver/test-adapter")
	list.Dir = root
	dir, err := list.Output()
	require.NoError(b, err)
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "main.go"))
	require.NoError(b, err)
	const address = `":8080"`
	require.Equal(b, 1, strings.Count(string(content), address))
	safe := strings.Replace(string(content), address, `"127.0.0.1:0"`, 1)
	build := foresail.GoBuild{
		Package: "./test/bench/scale/test-adapter", Output: filepath.Join(c.Dir(), "test-adapter"),
		Replace: map[string]string{"test/bench/scale/test-adapter/main.go": safe},
	}
	require.NoError(b, build.Run(b.Context()))
	return build.Output
}
