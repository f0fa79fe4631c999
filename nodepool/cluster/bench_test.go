package cluster

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// realistic is a pod as the API server would send it, of the application i%300, with fields that are not needed here.
func realistic(i, nodes int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", i%300)
	p := onNode(fmt.Sprintf("%s-6d4cf56db6-%05d", app, i))
	p.Namespace = fmt.Sprintf("team-%d", i%300%40)
	p.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	p.Labels = map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app,
		"pod-template-hash": "6d4cf56db6", "team": p.Namespace, "tier": "web"}
	p.OwnerReferences[0].UID = types.UID("owner-of-" + app)
	p.Spec.NodeName = fmt.Sprintf("n-%05d", i%nodes)
	for j := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: fmt.Sprintf("value-%d-%d", i, j)})
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet",
		FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
	return p
}

func populated(b *testing.B, nodes, pods int) *Watcher {
	b.Helper()
	w := NewWatcher(nil)
	for _, t := range []cache.ReflectorStore{w.nodes, w.pods, w.daemonSets, w.budgets, w.claims, w.volumes, w.classes} {
		require.NoError(b, t.Replace(nil, ""))
	}
	for i := range nodes {
		n := nodeNamed(fmt.Sprintf("n-%05d", i))
		n.Labels = map[string]string{corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: string(rune('a' + i%3))}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Images = make([]corev1.ContainerImage, 50)
		require.NoError(b, w.nodes.Add(n))
	}
	for i := range pods {
		require.NoError(b, w.pods.Add(realistic(i, nodes)))
	}
	for i := range 300 {
		pdb := budgetFor(fmt.Sprintf("app-%d", i), int32(i%2))
		pdb.Namespace = fmt.Sprintf("team-%d", i%40)
		pdb.Spec.Selector.MatchLabels = map[string]string{"app.kubernetes.io/name": pdb.Name}
		require.NoError(b, w.budgets.Add(pdb))
	}
	return w
}

func held() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func BenchmarkObserve(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{100, 3000}, {1000, 30000}, {5000, 150000}} {
		b.Run(fmt.Sprintf("%d nodes, %d pods", size.nodes, size.pods), func(b *testing.B) {
			before := held()
			w := populated(b, size.nodes, size.pods)
			kept := held() - before
			b.ReportAllocs()
			for b.Loop() {
				c, err := w.Observe(b.Context())
				require.NoError(b, err)
				require.Len(b, c.Nodes, size.nodes)
			}
			b.ReportMetric(kept/1e6, "MB-held")
			b.ReportMetric(kept/float64(size.pods), "bytes-held/pod")
		})
	}
}

// BenchmarkPodChanges measures the cost of an event of a pod.
func BenchmarkPodChanges(b *testing.B) {
	w := populated(b, 1000, 30000)
	p := realistic(7, 1000)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, w.pods.Update(p))
	}
}
