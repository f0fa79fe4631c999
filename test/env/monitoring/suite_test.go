package monitoring

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/workload"
)

const (
	namespace = "shop"
	replicas  = 3
	// A pod is asked for what keeps it busy two fifths of the time.
	serviceTime = 40 * time.Millisecond
	ratePerPod  = 10.0
	askedCPU    = 0.4
	selector    = "served=true"
)

// manifest has the pods that are scraped, one that never becomes ready, and one that no selector matches.
const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: %[1]d
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web, served: "true"}
      annotations: {test.foresail.dev/service-time: %[2]s}
    spec:
      containers:
      - name: app
        image: none
        ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
---
apiVersion: v1
kind: Pod
metadata:
  name: late
  namespace: shop
  labels: {app: web, served: "true"}
  annotations: {test.foresail.dev/ready-delay: 1h}
spec:
  containers: [{name: app, image: none, ports: [{name: metrics, containerPort: 9090}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: shop, labels: {app: other}}
spec:
  containers: [{name: app, image: none, ports: [{name: metrics, containerPort: 9090}]}]
`

// suite is a cluster with pods under a constant load.
type suite struct {
	cluster  *controlplane.Cluster
	binaries Binaries
	pods     []string // the names of the ready ones that are to be scraped
}

func TestMonitoring(t *testing.T) {
	s := startSuite(t)
	// First, because it takes two readings until it knows anything.
	metricsServer := startMetricsServer(t, s)
	steps := []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"a server scrapes each ready pod and is queried for ranges", testServer},
		{"a server that serves TLS to users it knows", testServerAuthentication},
		{"an agent sends version 1", func(t *testing.T, s *suite) { testAgent(t, s, 1) }},
		{"an agent sends version 2", func(t *testing.T, s *suite) { testAgent(t, s, 2) }},
		{"metrics-server reports what each pod uses",
			func(t *testing.T, s *suite) { testPodMetrics(t, s, metricsServer) }},
	}
	t.Run("steps", func(t *testing.T) {
		for _, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				t.Parallel()
				step.run(t, s)
			})
		}
	})
	require.NoError(t, s.cluster.Err())
}

func startSuite(t *testing.T) *suite {
	t.Helper()
	binaries, err := Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{
		Progress: os.Stderr, Nodes: 2, ReadyDelay: time.Second, Dir: t.TempDir(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	s := &suite{cluster: cluster, binaries: binaries}
	s.background(t, func(ctx context.Context) error {
		return workload.Run(ctx, cluster.RESTConfig(), workload.Options{Seed: 1})
	})
	_, err = cluster.Apply(t.Context(), fmt.Appendf(nil, manifest, replicas, serviceTime))
	require.NoError(t, err)
	s.waitPods(t)
	s.load(t)
	return s
}

// background runs something until the test ends.
func (s *suite) background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (s *suite) waitPods(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := s.cluster.Client().CoreV1().Pods(namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false
		}
		s.pods = nil
		for _, pod := range list.Items {
			if isReady(pod) {
				s.pods = append(s.pods, pod.Name)
			}
		}
		return len(s.pods) == replicas
	}, time.Minute, pollInterval)
}

func isReady(pod corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *suite) load(t *testing.T) {
	t.Helper()
	pods, err := loadgen.NewReadyPods(s.cluster.Client(), namespace, selector, 0)
	require.NoError(t, err)
	s.background(t, func(ctx context.Context) error {
		if err := pods.Start(ctx); err != nil {
			return err
		}
		generator, err := loadgen.New(loadgen.Config{
			Profile: loadgen.Constant(ratePerPod*replicas, 20*time.Minute), Endpoints: pods,
		})
		if err != nil {
			return err
		}
		_, err = generator.Run(ctx)
		return err
	})
}

// startPrometheus runs one for a step and waits for it.
func (s *suite) startPrometheus(t *testing.T, options PrometheusOptions) *Prometheus {
	t.Helper()
	options.Binaries, options.Selector = s.binaries, selector
	options.ExtraArgs = []string{"--scrape.discovery-reload-interval=1s"}
	p, err := StartPrometheus(t.Context(), s.cluster, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	require.NoError(t, p.WaitReady(within(t, time.Minute)))
	return p
}

func within(t *testing.T, span time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	t.Cleanup(cancel)
	return ctx
}
