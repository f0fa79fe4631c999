package extender

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// The largest cluster that Kubernetes promises to bear.
const (
	mostNodes = 5_000
	mostPods  = 150_000
)

// realistic is a pod as the API server would send it, bound at a time, with what no one here needs.
func realistic(i int, bound time.Time) *corev1.Pod {
	p := boundPod(fmt.Sprintf("app-%d-6d4cf56db6-%05d", i%300, i), fmt.Sprintf("n-%05d", i%mostNodes))
	p.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	p.CreationTimestamp = metav1.NewTime(bound)
	p.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, bound),
		since(corev1.PodReady, corev1.ConditionTrue, bound)}
	for j := range 20 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: fmt.Sprintf("value-%d-%d", i, j)})
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet",
		FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
	return p
}

func heldBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// large is an Extender that knows nodes, and what they use.
func large(b *testing.B) *Extender {
	b.Helper()
	f := newTold()
	loads := &snapshot.NodeLoads{Nodes: map[string]snapshot.NodeLoad{}}
	e, err := New(Options{
		Client: fake.NewClientset(), Forecasts: f, RemovalMark: removalMark, Rules: DefaultRules(), Now: always(noon),
		Registry: prometheus.NewRegistry(),
	})
	require.NoError(b, err)
	var nodes []any
	for i := range mostNodes {
		n := someNode(fmt.Sprintf("n-%05d", i), types.UID(fmt.Sprint(i)))
		nodes = append(nodes, n)
		u := snapshot.Use{Sampled: noon.Add(-10 * time.Second), Window: 20 * time.Second, Now: 1, Predicted: 2,
			Upper: 3}
		loads.Nodes[n.Name] = snapshot.NodeLoad{CPU: u, Memory: u}
	}
	f.loads.Store(loads)
	require.NoError(b, e.cluster.nodes.Replace(nodes, ""))
	require.NoError(b, e.cluster.pods.Replace(nil, ""))
	return e
}

// BenchmarkPodsHeld is what it takes to know all pods of a large cluster, 1,000 of which are on the assumed.
func BenchmarkPodsHeld(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		e := large(b)
		before := heldBytes()
		b.StartTimer()
		for i := range mostPods {
			bound := noon.Add(-time.Hour)
			if i < 1000 {
				bound = noon
			}
			require.NoError(b, e.cluster.pods.Update(realistic(i, bound)))
		}
		b.StopTimer()
		require.Len(b, e.cluster.pods.Rows(), mostPods)
		b.ReportMetric((heldBytes()-before)/mostPods, "bytes-held/pod")
		runtime.KeepAlive(e)
		b.StartTimer()
	}
}

// BenchmarkPodEvents is what each event of a pod costs: one of a pod that was bound long ago, and
// the binding of another with its end.
func BenchmarkPodEvents(b *testing.B) {
	for name, change := range map[string]func(e *Extender, p *corev1.Pod) error{
		"updated": func(e *Extender, p *corev1.Pod) error { return e.cluster.pods.Update(p) },
		"bound or gone": func(e *Extender, p *corev1.Pod) error {
			if _, there := e.cluster.pods.Rows()[idOf(p.UID)]; there {
				return e.cluster.pods.Delete(p)
			}
			return e.cluster.pods.Add(p)
		},
	} {
		b.Run(name, func(b *testing.B) {
			e := large(b)
			p := realistic(0, noon.Add(-time.Second))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, change(e, p))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkViews is what a snapshot of a large cluster costs, with pods that were bound of late.
func BenchmarkViews(b *testing.B) {
	for _, recent := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d pods on the assumed", recent), func(b *testing.B) {
			e := large(b)
			for i := range recent {
				require.NoError(b, e.cluster.pods.Update(realistic(i, noon)))
			}
			b.ReportAllocs()
			for b.Loop() {
				e.refresh(b.Context())
			}
			require.Len(b, e.snapshot().nodes, mostNodes)
		})
	}
}

// BenchmarkTentative is what counting the pod that is scored adds to an answer.
func BenchmarkTentative(b *testing.B) {
	e := large(b)
	p := boundPod("p", "")
	require.NoError(b, e.cluster.pods.Add(p))
	e.refresh(b.Context())
	n := e.snapshot().nodes["n-00000"]
	b.ReportAllocs()
	defer func() { require.Len(b, e.assumed.assumed, 1) }()
	for b.Loop() {
		e.assume(p.UID, n, use{1, 1}, use{1, 1})
	}
}
