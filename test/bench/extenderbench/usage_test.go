package extenderbench

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/monitoring"
)

// usageResolution is how often metrics-server reads kubelets.
const usageResolution = 15 * time.Second

// serveUsage has the API server ask this process for what nodes use, until the benchmark ends.
func serveUsage(b *testing.B, cluster *controlplane.Cluster, c crowd) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context())) // foresail is stopped before
	b.Cleanup(cancel)
	require.NoError(b, monitoring.ServeNodeMetrics(ctx, cluster,
		func() []metricsv1beta1.NodeMetrics { return c.usage(time.Now()) }))
}

// usage is what nodes used in the last 15 seconds that are complete.
func (c crowd) usage(now time.Time) []metricsv1beta1.NodeMetrics {
	turn := now.UnixNano() / int64(usageResolution)
	at := metav1.NewTime(time.Unix(0, turn*int64(usageResolution)))
	out := make([]metricsv1beta1.NodeMetrics, c.nodes)
	for i := range out {
		share := shareOf(i, turn)
		out[i] = metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: c.name(i),
				CreationTimestamp: at}, Timestamp: at, Window: metav1.Duration{Duration: usageResolution},
			Usage: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(15.89e9*share), resource.Nano),
				corev1.ResourceMemory: *resource.NewQuantity(int64(float64(60<<30)*share), resource.BinarySI),
			},
		}
	}
	return out
}

// shareOf is what share of itself a node uses: between a fifth and four fifths by the node, and a
// little to and fro.
func shareOf(node int, turn int64) float64 {
	return 0.5 + 0.3*math.Sin(float64(node)) + 0.03*math.Sin(float64(turn)/7+float64(node%31))
}
