package monitoring

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeCollector has a pod of two containers, of which the first works, in the words of a kubelet.
func TestNodeCollector(t *testing.T) {
	at := time.UnixMilli(1_700_000_123_456)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "proxy"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1_700_000_000,
				0)}},
		}}},
	}
	node := nodeCollector{usages: []podUsage{{pod: pod, at: at, busy: 12, held: 2}}, cpu: 30, at: at.Add(time.Second)}
	require.NoError(t, testutil.CollectAndCompare(node, strings.NewReader(`
# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed by the container in core-seconds.
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 12.001 1700000123456
container_cpu_usage_seconds_total{container="proxy",namespace="shop",pod="web"} 0.001 1700000123456
# HELP container_memory_working_set_bytes Current working set of the container in bytes.
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="app",namespace="shop",pod="web"} 3.3685504e+07 1700000123456
container_memory_working_set_bytes{container="proxy",namespace="shop",pod="web"} 3.3554432e+07 1700000123456
# HELP container_start_time_seconds Start time of the container since unix epoch in seconds.
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="app",namespace="shop",pod="web"} 1.7e+09
# HELP node_cpu_usage_seconds_total Cumulative cpu time consumed by the node in core-seconds.
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 30 1700000124456
# HELP node_memory_working_set_bytes Current working set of the node in bytes.
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.00794368e+08 1700000124456
# HELP pod_cpu_usage_seconds_total Cumulative cpu time consumed by the pod in core-seconds.
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 12.002 1700000123456
# HELP pod_memory_working_set_bytes Current working set of the pod in bytes.
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="shop",pod="web"} 6.7239936e+07 1700000123456
# HELP resource_scrape_error 1 if there was an error while getting container metrics, 0 otherwise.
# TYPE resource_scrape_error gauge
resource_scrape_error 0
`)))
}
