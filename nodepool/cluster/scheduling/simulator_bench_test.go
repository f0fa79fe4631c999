package scheduling

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// busyCluster is one of n nodes in three zones that run 30 pods each, of 300 applications: a third spread over
// zones, a third keep apart on hosts.
func busyCluster(b *testing.B, n int) *cluster.Cluster {
	b.Helper()
	var objects []runtime.Object
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		object := node(name, string(rune('a'+i%3))).Object
		object.Status.Allocatable = list("cpu", "4", "memory", "64Gi", "pods", "110")
		object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		objects = append(objects, object)
		for j := range 30 {
			app := (i*30 + j) % 300
			change := func(*corev1.Pod) {}
			switch app % 3 {
			case 0:
				change = spreadOver(zone, 1)
			case 1:
				change = awayFrom("app-"+strconv.Itoa(app), host)
			}
			p := pods("app-"+strconv.Itoa(app), 1, requests("cpu", "110m", "memory", "1Gi"), change)[0].Pod
			p.Name, p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("p-%d-%d", i, j), name, corev1.PodRunning
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: p.Labels["app"],
				UID: types.UID(p.Labels["app"]), Controller: new(true)}}
			objects = append(objects, p)
		}
	}
	c, err := cluster.List(b.Context(), fake.NewClientset(objects...), noon)
	require.NoError(b, err)
	return c
}

// BenchmarkRemoval measures the largest number of simulations of a decision to remove nodes: of several nodes together,
// and then one by one.
func BenchmarkRemoval(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d nodes, %d pods", n, 30*n), func(b *testing.B) {
			c := busyCluster(b, n)
			in := Input{Offers: []provider.Offer{offer("a", "m"), offer("b", "m"), offer("c", "m")}}
			b.ReportAllocs()
			for b.Loop() {
				h := NewSimulator(c, in)
				var all []string
				for i := range n / 10 {
					all = append(all, c.Nodes[i].Object.Name)
				}
				h.Without(all, false)
				for i := range 64 {
					h.Without([]string{c.Nodes[i].Object.Name}, false)
				}
			}
		})
	}
}
