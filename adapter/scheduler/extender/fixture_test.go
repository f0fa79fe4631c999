package extender

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// epoch is now in tests.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const gib = 1 << 30

// testNode is a warm node of 4 cores and 16 GiB that is predicted to use cores and GiB, with an upper estimate a tenth
// above.
func testNode(name string, cores, gibs float64) *node {
	s := &slot{}
	s.workloadPods.Store(3)
	return &node{
		slot: s, name: name, allocatable: use{4000, 16 * gib}, created: epoch.Add(-time.Hour),
		readySince: epoch.Add(-time.Hour),
		cpu: snapshot.Use{Sampled: epoch.Add(-10 * time.Second), Horizon: 2 * time.Minute,
			Predicted: cores, Upper: cores * 1.1},
		memory: snapshot.Use{Sampled: epoch.Add(-10 * time.Second), Horizon: 2 * time.Minute,
			Predicted: gibs * gib, Upper: gibs * 1.1 * gib},
	}
}

// testSnapshot is a fresh snapshot of nodes.
func testSnapshot(nodes ...*node) *clusterSnapshot {
	v := &clusterSnapshot{at: epoch, nodes: map[string]*node{}}
	for _, n := range nodes {
		v.nodes[n.name] = n
	}
	return v
}

// testPod requests one core and 2 GiB.
func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-1",
			CreationTimestamp: metav1.NewTime(epoch.Add(-time.Second))},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("2Gi")},
		}}}},
	}
}

// counted is a call of assumeTimeout, or of forget if there is no node.
type counted struct {
	uid                types.UID
	node               string
	requests, estimate use
}

// rig is an Extender with a fixed snapshot.
type rig struct {
	*Extender
	registry *prometheus.Registry
	seen     *clusterSnapshot
	log      klog.Logger // of requests

	mu      sync.Mutex
	counted []counted
}

// logTo returns a logger that writes everything to a buffer.
func logTo(b *bytes.Buffer) klog.Logger {
	return funcr.New(func(_, line string) { b.WriteString(line + "\n") }, funcr.Options{Verbosity: 4})
}

func newRig(rules Rules, v *clusterSnapshot) *rig {
	r := &rig{registry: prometheus.NewRegistry(), seen: v}
	o := Options{Rules: rules, Now: func() time.Time { return epoch }, Registry: r.registry}
	r.Extender = &Extender{rules: rules, now: o.Now, assumed: newAssumedPods(rules)}
	r.current.Store(v)
	t, err := newTelemetry(o.Registry, o.Now, r.snapshot, r.assumed)
	if err != nil {
		panic(err)
	}
	r.handler = newHandler(&o, r.snapshot, r, t)
	return r
}

func (r *rig) seek(*corev1.Pod) (*arrival, bool) { return nil, true }

func (r *rig) wait(context.Context, *corev1.Pod, *arrival) bool { return true }

func (r *rig) assume(pod types.UID, n *node, requests, estimate use) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted = append(r.counted, counted{uid: pod, node: n.name, requests: requests, estimate: estimate})
}

func (r *rig) forget(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted = append(r.counted, counted{uid: pod})
}

// evaluationOf asks about nodes; names that the snapshot does not have are unknown.
func evaluationOf(v *clusterSnapshot, pod *corev1.Pod, rules Rules, names ...string) (*evaluation, []verdict) {
	q := &evaluation{rules: rules, now: epoch, snapshot: v, pod: podRequestOf(pod, nil)}
	out := make([]verdict, len(names))
	for i, name := range names {
		q.nodes = append(q.nodes, v.nodes[name])
		out[i].name = name
	}
	return q, out
}

// ranSince is a container that has run since then.
func ranSince(at time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}
}
