package binpack

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/nodepool/clusterstate"
)

// group is pods that no rule tells apart.
type group struct {
	pod      *corev1.Pod // one of them
	names    []string    // of all, in order
	affinity nodeaffinity.RequiredNodeAffinity
	where    []*corev1.NodeSelector                // its volumes can be used
	volumes  []*nodeaffinity.LazyErrorNodeSelector // the same
	request  vector
	ports    []corev1.ContainerPort
	topology *topology // nil: other pods do not matter to it
	refusal  refusal

	takes    []bool // by shape: an empty one could run it
	shapes   int    // that could
	cools    bool   // all of these are cooling
	refused  bool   // all of these were refused
	obstacle *obstacle
	size     float64
	order    int // among the groups

	left int // pods without a place
	room int // pods with one on a node that is there
	new  int // pods with one on a node that is added
}

// hasShape tells whether some new node of the pool could run it.
func (g *group) hasShape() bool { return g.shapes > 0 }

// picky is 1 for pods that cannot share a node with each other, or must be in certain domains: others fill up behind them.
func (g *group) picky() int {
	if len(g.ports) > 0 || g.topology != nil && (g.topology.alone || g.topology.mutual()) {
		return 1
	}
	return 0
}

// grouper finds the group of a pod.
type grouper struct {
	seed   maphash.Seed
	labels map[string]bool // those that some rule looks at
	joins  joins
	known  map[uint64][]*group
	all    []*group
}

func groupsOf(pods []clusterstate.Pending, all joins, labels map[string]bool) []*group {
	b := &grouper{seed: maphash.MakeSeed(), labels: labels, joins: all, known: map[uint64][]*group{}}
	for i := range pods {
		if pods[i].Stuck == "" {
			b.add(&pods[i])
		}
	}
	for _, g := range b.all {
		slices.Sort(g.names)
		g.left = len(g.names)
		g.affinity = nodeaffinity.GetRequiredNodeAffinity(g.pod)
		for _, s := range g.where {
			g.volumes = append(g.volumes, nodeaffinity.NewLazyErrorNodeSelector(s))
		}
		g.ports = clusterstate.HostPorts(&g.pod.Spec)
	}
	slices.SortFunc(b.all, func(x, y *group) int { return cmp.Compare(x.names[0], y.names[0]) })
	return b.all
}

func (b *grouper) add(pending *clusterstate.Pending) {
	p := pending.Pod
	name := p.Namespace + "/" + p.Name
	refused := b.joins.refusalOf(pending)
	sum := b.sum(p) + b.sumOf(pending.Volumes) + uint64(refused)*0x9e3779b97f4a7c15
	for _, g := range b.known[sum] {
		if g.refusal == refused && b.alike(g.pod, p) && slices.EqualFunc(g.where, pending.Volumes, equal[corev1.NodeSelector]) {
			g.names = append(g.names, name)
			return
		}
	}
	g := &group{pod: p, names: []string{name}, where: pending.Volumes, refusal: refused}
	b.known[sum] = append(b.known[sum], g)
	b.all = append(b.all, g)
}

// sum is equal for pods that are alike, and rarely for others. The order of maps must not matter to it.
func (b *grouper) sum(p *corev1.Pod) uint64 {
	out := maphash.String(b.seed, p.Namespace)
	for key := range b.labels {
		if value, ok := p.Labels[key]; ok {
			out += maphash.String(b.seed, key+"="+value)
		}
	}
	for key, value := range p.Spec.NodeSelector {
		out += maphash.String(b.seed, key+":"+value)
	}
	for i := range p.Spec.Containers {
		for name, quantity := range p.Spec.Containers[i].Resources.Requests {
			out += maphash.String(b.seed, string(name)) ^ uint64(amount(cpu, quantity))*0x9e3779b97f4a7c15
		}
	}
	return out
}

// sumOf is equal for volumes that are in the same places.
func (b *grouper) sumOf(volumes []*corev1.NodeSelector) uint64 {
	var out uint64
	for _, s := range volumes {
		for i := range s.NodeSelectorTerms {
			for _, all := range [][]corev1.NodeSelectorRequirement{s.NodeSelectorTerms[i].MatchExpressions, s.NodeSelectorTerms[i].MatchFields} {
				for _, r := range all {
					out += maphash.String(b.seed, r.Key)
					for _, value := range r.Values {
						out += maphash.String(b.seed, value)
					}
				}
			}
		}
	}
	return out
}

// alike tells whether no rule tells two pods apart.
func (b *grouper) alike(x, y *corev1.Pod) bool {
	for key := range b.labels {
		xv, xok := x.Labels[key]
		yv, yok := y.Labels[key]
		if xv != yv || xok != yok {
			return false
		}
	}
	xs, ys := &x.Spec, &y.Spec
	return x.Namespace == y.Namespace && clusterstate.IsDaemonSets(x) == clusterstate.IsDaemonSets(y) &&
		maps.Equal(xs.NodeSelector, ys.NodeSelector) &&
		slices.EqualFunc(xs.Containers, ys.Containers, alikeContainers) &&
		slices.EqualFunc(xs.InitContainers, ys.InitContainers, alikeContainers) &&
		alikeLists(xs.Overhead, ys.Overhead) && equal(xs.Resources, ys.Resources) && equal(xs.Affinity, ys.Affinity) &&
		(len(xs.Tolerations)+len(ys.Tolerations) == 0 || equality.Semantic.DeepEqual(xs.Tolerations, ys.Tolerations)) &&
		(len(xs.TopologySpreadConstraints)+len(ys.TopologySpreadConstraints) == 0 ||
			equality.Semantic.DeepEqual(xs.TopologySpreadConstraints, ys.TopologySpreadConstraints))
}

// equal compares what two pointers point to; most are nil, or the same.
func equal[T any](x, y *T) bool { return x == y || equality.Semantic.DeepEqual(x, y) }

func alikeContainers(x, y corev1.Container) bool {
	return alikeLists(x.Resources.Requests, y.Resources.Requests) && equal(x.RestartPolicy, y.RestartPolicy) &&
		(len(x.Ports)+len(y.Ports) == 0 || slices.Equal(x.Ports, y.Ports))
}

func alikeLists(x, y corev1.ResourceList) bool {
	if len(x) != len(y) {
		return false
	}
	for name, quantity := range x {
		if other, ok := y[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
