package scheduling

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/foresail/foresail/nodepool/cluster"
)

// world is the precomputed state that all questions about one Input share. Questions change its
// caches, so it is not safe for concurrent use.
type world struct {
	dimensions dimensions // all resources that pods of the cluster request
	joins      joins
	nodes      []nodeState // as in the Input
	kinds      []*cluster.Kind
	index      map[*cluster.Kind]int32
	labels     map[string]bool // by which the rules of bound pods select
	selectors  map[*metav1.LabelSelector]labels.Selector
}

// nodeState is a node with the room that its pods leave.
type nodeState struct {
	free, whole vector // if it takes pods; whole is without its DaemonSets
	pods        []kindCount
	ports       []corev1.ContainerPort
	rank        refusal // see [joins]
	takesPods   bool
}

// kindCount is the number of pods of a kind on a node, and of those that are not being deleted.
type kindCount struct {
	kind       int32
	n, staying int32
}

// worldOf returns the world of an Input.
func worldOf(in *Input) *world {
	if in.world != nil {
		return in.world
	}
	return newWorld(in)
}

func newWorld(in *Input) *world {
	w := &world{
		dimensions: newDimensions(), joins: joinsOf(in.Nodes), nodes: make([]nodeState, len(in.Nodes)),
		index: map[*cluster.Kind]int32{}, labels: map[string]bool{},
		selectors: map[*metav1.LabelSelector]labels.Selector{},
	}
	for i := range in.Nodes {
		w.observe(&in.Nodes[i], &w.nodes[i], in)
	}
	for _, k := range w.kinds {
		w.dimensions.add(k.Requests)
		addLabelsOfTerms(w.labels, k.AntiAffinity)
	}
	for i := range in.Pods {
		w.dimensions.add(cluster.Requests(in.Pods[i].Pod))
	}
	for i := range in.Nodes {
		if s := &w.nodes[i]; s.takesPods {
			s.free, s.whole = roomOf(w.dimensions, &in.Nodes[i], in)
		}
	}
	return w
}

// observe counts the pods of a node.
func (w *world) observe(n *cluster.Node, s *nodeState, in *Input) {
	s.pods = make([]kindCount, 0, len(n.Pods))
	for _, list := range [][]*cluster.Pod{n.Pods, n.Nominated} {
		for _, pod := range list {
			w.count(pod, s)
			s.ports = append(s.ports, pod.Ports...)
		}
	}
	s.rank = w.joins.rankOf(n)
	s.takesPods = n.Ready && !n.Object.Spec.Unschedulable && !n.Leaving && !in.Leaving[n.Object.Name]
	for driver := range n.AttachLimits {
		w.dimensions.number(volumesOf(driver))
	}
	for _, a := range n.Attached {
		w.dimensions.number(volumesOf(a.Driver))
	}
}

func (w *world) count(pod *cluster.Pod, s *nodeState) {
	k, known := w.index[pod.Kind]
	if !known {
		k = int32(len(w.kinds))
		w.kinds, w.index[pod.Kind] = append(w.kinds, pod.Kind), k
	}
	at := slices.IndexFunc(s.pods, func(c kindCount) bool { return c.kind == k })
	if at < 0 {
		at = len(s.pods)
		s.pods = append(s.pods, kindCount{kind: k})
	}
	s.pods[at].n++
	if !pod.Leaving {
		s.pods[at].staying++
	}
}

// roomOf returns the free amounts of a node, and its amounts without DaemonSets.
func roomOf(d dimensions, n *cluster.Node, in *Input) (free, whole vector) {
	free = d.vector(n.Object.Status.Allocatable)
	whole = slices.Clone(free)
	whole.take(d.vector(n.DaemonSets), 1)
	free.take(d.vector(n.Requested), 1)
	free[plain] = math.MaxInt32
	limitAttached(d, free, whole, n, in)
	return free, whole
}

// selector returns a selector that the API server has validated, from the cache.
func (w *world) selector(s *metav1.LabelSelector) labels.Selector {
	out, known := w.selectors[s]
	if !known {
		out = selectorOf(s)
		w.selectors[s] = out
	}
	return out
}
