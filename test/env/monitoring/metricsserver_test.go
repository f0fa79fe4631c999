package monitoring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

func startMetricsServer(t *testing.T, s *suite) *MetricsServer {
	t.Helper()
	m, err := StartMetricsServer(within(t, 10*time.Minute), s.cluster, MetricsServerOptions{
		Binaries: s.binaries, Resolution: minResolution, Selector: selector,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Stop()) })
	return m
}

func testPodMetrics(t *testing.T, s *suite, m *MetricsServer) {
	client, err := metrics.NewForConfig(s.cluster.RESTConfig())
	require.NoError(t, err)
	byPod := map[string]metricsv1beta1.PodMetrics{}
	require.Eventually(t, func() bool {
		list, err := client.PodMetricses(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false
		}
		clear(byPod)
		for _, item := range list.Items {
			byPod[item.Name] = item
		}
		return len(byPod) == replicas+1 // the one that is not ready uses something too
	}, time.Minute, pollInterval, m.LogTail())
	for _, pod := range s.pods {
		require.Len(t, byPod[pod].Containers, 1, pod)
		usage := byPod[pod].Containers[0].Usage
		assert.InDelta(t, askedCPU, usage.Cpu().AsApproximateFloat64(), 0.15, pod)
		assert.GreaterOrEqual(t, usage.Memory().Value(), int64(idleMemory), pod)
		assert.InDelta(t, minResolution, byPod[pod].Window.Duration, float64(minResolution), pod)
	}
	assert.InDelta(t, 0, byPod["late"].Containers[0].Usage.Cpu().AsApproximateFloat64(), 0.01)
	nodes, err := client.NodeMetricses().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 2)
	sum := 0.0
	for _, node := range nodes.Items {
		sum += node.Usage.Cpu().AsApproximateFloat64()
	}
	assert.InDelta(t, replicas*askedCPU, sum, 0.3, "the nodes use what their pods use")
}
