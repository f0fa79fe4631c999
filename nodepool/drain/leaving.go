package drain

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// overstay is how long past its grace period a pod is awaited.
const overstay = time.Minute

// leavingPods are the pods that were seen to be deleted, by node.
type leavingPods struct {
	mu sync.Mutex
	of map[string]map[types.UID]leavingPod
}

// leavingPod is a pod that is being deleted.
type leavingPod struct {
	name  types.NamespacedName
	since time.Time // first seen
	until time.Time // awaited
}

// update records the pods of a node at a time, and returns those that are awaited: all except those that overstay.
func (l *leavingPods) update(node string, pods []*corev1.Pod, now time.Time) []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	var awaited []*corev1.Pod
	leaving := map[types.UID]leavingPod{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			one, ok := l.of[node][pod.UID]
			if !ok {
				one = leavingPod{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, since: now}
			}
			one.until = one.since.Add(deletionGrace(pod) + overstay)
			leaving[pod.UID] = one
			if now.After(one.until) {
				continue
			}
		}
		awaited = append(awaited, pod)
	}
	if l.of == nil {
		l.of = map[string]map[types.UID]leavingPod{}
	}
	if l.of[node] = leaving; len(leaving) == 0 {
		delete(l.of, node)
	}
	return awaited
}

// cover reports whether all of these pods were seen to be deleted before, and none overstays.
func (l *leavingPods) cover(node string, pods []types.NamespacedName, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := map[types.NamespacedName]bool{}
	for _, one := range l.of[node] {
		waiting[one.name] = !now.After(one.until)
	}
	return !slices.ContainsFunc(pods, func(pod types.NamespacedName) bool { return !waiting[pod] })
}

// forget drops the pods of a node.
func (l *leavingPods) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, node)
}

// deletionGrace returns the grace period of a pod that is being deleted.
func deletionGrace(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}
