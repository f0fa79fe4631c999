package podtracker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// benchmarkCluster is a tracker with 5,000 fleets of 20 pods in so many namespaces.
func benchmarkCluster(namespaces int) (*Tracker, []*TargetPods, []*corev1.Pod) {
	const fleets, podsPerFleet = 5_000, 20
	tracker := NewTracker(Options{Now: func() time.Time { return at(100) }})
	var following []*TargetPods
	var pods []*corev1.Pod
	for f := range fleets {
		namespace, name := fmt.Sprint("ns-", f%namespaces), fmt.Sprint("app-", f)
		following = append(following, tracker.Follow(types.NamespacedName{Namespace: namespace, Name: name}, namespace,
			labels.SelectorFromSet(labels.Set{"app": name, "managed-by": "helm"})))
		for i := range podsPerFleet {
			p := podWith(named(fmt.Sprint(name, "-", i)), readyAt(20))
			p.Namespace, p.Labels = namespace, map[string]string{"app": name, "managed-by": "helm",
				"pod-template-hash": "abc"}
			tracker.Update(p)
			pods = append(pods, p)
		}
	}
	return tracker, following, pods
}

func BenchmarkEvent(b *testing.B) {
	for _, namespaces := range []int{1, 500} {
		b.Run(fmt.Sprint("namespaces=", namespaces), func(b *testing.B) {
			tracker, _, pods := benchmarkCluster(namespaces)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				tracker.Update(pods[i%len(pods)])
				i++
			}
		})
	}
}

func BenchmarkInstances(b *testing.B) {
	_, fleets, _ := benchmarkCluster(500)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		fleets[i%len(fleets)].Instances(at(0))
		i++
	}
}

func BenchmarkFollow(b *testing.B) {
	tracker, _, _ := benchmarkCluster(1)
	s := labels.SelectorFromSet(labels.Set{"app": "app-7"})
	key := types.NamespacedName{Name: "late"}
	for b.Loop() {
		tracker.Follow(key, "ns-0", s)
		tracker.Forget(key)
	}
}
