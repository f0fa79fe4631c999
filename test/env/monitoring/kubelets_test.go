package monitoring

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func usageOf(uid types.UID, busy float64) podUsage {
	return podUsage{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}, busy: busy}
}

func TestNodeUsageNeverFalls(t *testing.T) {
	k := &kubelets{nodes: map[string]*nodeWork{}}
	require.InDelta(t, startCPU, k.nodeCPU("node-1", nil), 1e-9)
	require.InDelta(t, startCPU+7, k.nodeCPU("node-1", []podUsage{usageOf("a", 3), usageOf("b", 4)}), 1e-9)
	require.InDelta(t, startCPU+9, k.nodeCPU("node-1", []podUsage{usageOf("a", 5)}), 1e-9, "b is gone, its work is not")
	require.InDelta(t, startCPU+9, k.nodeCPU("node-1", []podUsage{usageOf("a", 4)}), 1e-9,
		"an older reading that comes late")
	require.InDelta(t, startCPU, k.nodeCPU("node-2", nil), 1e-9)
}
