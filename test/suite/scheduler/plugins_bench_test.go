package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/provider"
)

// largeWorld returns a cluster of nodes in three zones, each of which runs pods of 300
// applications, a third of them spread over zones, a third of which keeps its pods on different
// nodes. Some of its nodes have room.
func largeWorld(nodes, each int) *world {
	w := &world{Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}}
	for _, z := range []string{"a", "b", "c"} {
		w.Pool.Offers = append(w.Pool.Offers,
			provider.Offer{Offer: fleet.Offer{Zone: z, InstanceType: "large"},
				Allocatable: list("cpu", "8", "memory", "64Gi", "pods", "110")})
	}
	for i := range nodes {
		name, z := fmt.Sprintf("n%05d", i), string(rune('a'+i%3))
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{host: name, zone: z, corev1.LabelOSStable: "linux"}}}
		n.Status.Allocatable = list("cpu", "8", "memory", "64Gi", "pods", "110")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		w.Nodes = append(w.Nodes, n)
		for j := range each {
			w.Pods = append(w.Pods, largeWorldPod(i*each+j, name))
		}
	}
	return w
}

func largeWorldPod(i int, node string) *corev1.Pod {
	app := i % 300
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("app-%d-%d", app, i),
		Labels: map[string]string{"app": fmt.Sprint(app)}}}
	p.UID = types.UID(p.Name)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: fmt.Sprint(app),
		UID: types.UID(fmt.Sprint(app)), Controller: new(true)}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "i",
		Resources: corev1.ResourceRequirements{Requests: list("cpu", "250m", "memory", "1Gi")}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(app)}}
	switch app % 3 {
	case 0:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
	case 1:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector,
				TopologyKey: host}}}}
	}
	corev1defaults.SetObjectDefaults_Pod(p)
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	return p
}

// BenchmarkHomes asks whether the pods of a node have other nodes, a different node each time: the model, and
// kube-scheduler's plugins, which place one pod after the other on the first node that passes.
func BenchmarkHomes(b *testing.B) {
	const nodes, each = 1000, 30
	w := largeWorld(nodes, each)
	b.Run("model", func(b *testing.B) {
		m, err := newModel(b.Context(), w)
		require.NoError(b, err)
		defer processorTime(b)()
		homes, i := scheduling.NewSimulator(m.cluster, m.input(nil)), 0
		for b.Loop() {
			if i%nodes == nodes-1 {
				homes = scheduling.NewSimulator(m.cluster, m.input(nil)) // it remembers answers
			}
			require.Empty(b, homes.Without([]string{w.Nodes[i%nodes].Name}, false))
			i++
		}
	})
	b.Run("plugins", func(b *testing.B) {
		s, err := newScheduler(b.Context(), w)
		require.NoError(b, err)
		defer processorTime(b)()
		i := 0
		for b.Loop() {
			require.True(b, s.empties(b.Context(), w.Nodes[i%nodes].Name))
			i++
		}
	})
}

// BenchmarkFits asks for one pending pod whether a node has room.
func BenchmarkFits(b *testing.B) {
	w := largeWorld(1000, 30)
	for app, kind := range []string{"spread", "apart", "plain"} {
		pod := largeWorldPod(app, "")
		b.Run(kind+", model", func(b *testing.B) {
			m, err := newModel(b.Context(), w)
			require.NoError(b, err)
			defer processorTime(b)()
			for b.Loop() {
				require.Equal(b, 1, m.pack(cluster.Pending{Pod: pod}).Room)
			}
		})
		b.Run(kind+", plugins", func(b *testing.B) {
			s, err := newScheduler(b.Context(), w)
			require.NoError(b, err)
			defer processorTime(b)()
			for b.Loop() {
				require.NotEmpty(b, s.first(pod, ""))
			}
		})
	}
}

// BenchmarkSnapshot has kube-scheduler's snapshot made of all nodes and pods, which the plugins
// need before the first question.
func BenchmarkSnapshot(b *testing.B) {
	w := largeWorld(1000, 30)
	s, err := newScheduler(b.Context(), w)
	require.NoError(b, err)
	defer processorTime(b)()
	for b.Loop() {
		s.look()
	}
}

// processorTime reports the processor time of an operation, which does not depend on what else the
// machine does.
func processorTime(b *testing.B) func() {
	spent := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun := spent()
	return func() { b.ReportMetric(float64((spent()-begun).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

// empties reports whether the pods of a node have others, and puts everything back. The pods are
// placed while those of the node are still there: taking these away would cost the plugins more.
func (s *scheduler) empties(ctx context.Context, node string) bool {
	defer s.forget(len(s.pods))
	for _, p := range slices.Clone(s.pods) {
		if p.Spec.NodeName != node {
			continue
		}
		again := replacement(p)
		again.Name += "-again"
		f := s.first(again, node)
		if f == "" || ctx.Err() != nil {
			return false
		}
		s.bind(again, f)
	}
	return true
}

// first returns the first node that passes, beginning at one of chance as the scheduler does, "" for none.
func (s *scheduler) first(pod *corev1.Pod, not string) string {
	begin := rand.IntN(len(s.nodes)) //nolint:forbidigo // where it begins does not matter
	return s.search(pod, func(yield func(string) bool) {
		for i := range s.nodes {
			if n := s.nodes[(begin+i)%len(s.nodes)].Name; n != not && !yield(n) {
				return
			}
		}
	})
}
