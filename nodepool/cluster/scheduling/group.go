package scheduling

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/nodepool/cluster"
)

// group is a set of pods that no rule distinguishes. It is immutable.
type group struct {
	index    int         // among the groups of a packing
	pod      *corev1.Pod // one of them
	members  []member    // by name
	role     role
	budget   *cluster.Budget
	gang     string
	shared   []cluster.Attachment // its volumes that other pods may use as well
	attach   map[string]int       // the number of its other volumes, by driver
	affinity nodeaffinity.RequiredNodeAffinity
	where    []*corev1.NodeSelector                // where its volumes can be used
	volumes  []*nodeaffinity.LazyErrorNodeSelector // the same
	request  vector
	ports    []corev1.ContainerPort
	refusal  refusal
}

// requests returns the requests of a pod of the group, including its own volumes.
func (g *group) requests() corev1.ResourceList {
	out := cluster.Requests(g.pod)
	for driver, n := range g.attach {
		out[volumesOf(driver)] = quantity(n)
	}
	return out
}

// measure sets the request of each group, and adds dimensions for resources that only these pods
// request.
func measure(groups []*group, d dimensions) {
	requests := make([]corev1.ResourceList, len(groups))
	for i, g := range groups {
		requests[i] = g.requests()
		d.add(requests[i])
	}
	for _, g := range groups {
		for _, a := range g.shared {
			d.number(volumesOf(a.Driver))
		}
	}
	for i, g := range groups {
		g.request = d.vector(requests[i])
		if g.request[cpu] == 0 && g.request[memory] == 0 {
			g.request[plain] = 1
		}
	}
}

// grouper finds the group of a pod.
type grouper struct {
	seed   maphash.Seed
	labels map[string]bool // that some rule selects by
	joins  joins
	shared map[cluster.Attachment]bool // volumes that several pods may use
	known  map[uint64][]*group
	all    []*group
}

func groupsOf(pods []subject, all joins, labels map[string]bool, shared map[cluster.Attachment]bool) []*group {
	b := &grouper{seed: maphash.MakeSeed(), labels: labels, joins: all, shared: shared, known: map[uint64][]*group{}}
	for i := range pods {
		if pods[i].Stuck == "" {
			b.add(&pods[i])
		}
	}
	for _, g := range b.all {
		slices.SortFunc(g.members, func(x, y member) int { return cmp.Compare(x.name, y.name) })
		g.affinity = nodeaffinity.GetRequiredNodeAffinity(g.pod)
		for _, s := range g.where {
			g.volumes = append(g.volumes, nodeaffinity.NewLazyErrorNodeSelector(s))
		}
		g.ports = cluster.HostPorts(&g.pod.Spec)
	}
	slices.SortFunc(b.all, func(x, y *group) int {
		return cmp.Or(cmp.Compare(x.members[0].name, y.members[0].name), cmp.Compare(x.role, y.role))
	})
	for i, g := range b.all {
		g.index = i
	}
	return b.all
}

func (b *grouper) add(s *subject) {
	p := s.Pod
	one := &group{pod: p, where: s.Volumes, role: s.role, budget: s.Budget, gang: s.Gang}
	one.refusal = b.joins.refusalOf(&s.Pending)
	one.shared, one.attach = b.attachments(s)
	sum := b.sum(p) + b.sumOf(s.Volumes) + uint64(one.refusal)*0x9e3779b97f4a7c15 + uint64(s.role)
	if s.Gang != "" {
		sum += maphash.String(b.seed, s.Gang)
	}
	for _, g := range b.known[sum] {
		if g.like(one) && b.alike(g.pod, p) && slices.EqualFunc(g.where, s.Volumes, equal[corev1.NodeSelector]) {
			g.members = append(g.members, memberOf(s))
			return
		}
	}
	one.members = []member{memberOf(s)}
	b.known[sum] = append(b.known[sum], one)
	b.all = append(b.all, one)
}

// like reports whether pods of two groups have the same role, and equal volumes.
func (g *group) like(other *group) bool {
	sameBudget := g.budget == other.budget || g.budget != nil && other.budget != nil && *g.budget == *other.budget
	return g.refusal == other.refusal && g.role == other.role && g.gang == other.gang && sameBudget &&
		slices.Equal(g.shared, other.shared) && maps.Equal(g.attach, other.attach)
}

// attachments returns the volumes of a pod that other pods may use as well, and the number of the
// others by driver.
func (b *grouper) attachments(s *subject) (shared []cluster.Attachment, own map[string]int) {
	for _, a := range s.Attach {
		if b.shared[a] {
			shared = append(shared, a)
			continue
		}
		if own == nil {
			own = map[string]int{}
		}
		own[a.Driver]++
	}
	return shared, own
}

// labelsOfRules returns the labels by which rules of these pods and of bound ones select other
// pods.
func labelsOfRules(pods []subject, bound map[string]bool, daemonSets []*appsv1.DaemonSet) map[string]bool {
	out := maps.Clone(bound)
	for i := range pods {
		spec := &pods[i].Pod.Spec
		addLabelsOfTerms(out, affinityTerms(spec))
		addLabelsOfTerms(out, antiAffinityTerms(spec))
		for j := range spec.TopologySpreadConstraints {
			addLabelsOf(out, spec.TopologySpreadConstraints[j].LabelSelector)
			for _, key := range spec.TopologySpreadConstraints[j].MatchLabelKeys {
				out[key] = true
			}
		}
	}
	for _, ds := range daemonSets {
		addLabelsOfTerms(out, antiAffinityTerms(&ds.Spec.Template.Spec))
	}
	return out
}

// sharedOf returns the volumes that more than one of the pods uses, or that are attached to a
// schedulable node.
func sharedOf(pods []subject, nodes []cluster.Node, leaving map[string]bool) map[cluster.Attachment]bool {
	out, seen := map[cluster.Attachment]bool{}, map[cluster.Attachment]bool{}
	for i := range pods {
		for _, a := range pods[i].Attach {
			out[a] = seen[a]
			seen[a] = true
		}
	}
	if len(seen) == 0 {
		return nil
	}
	for i := range nodes {
		if n := &nodes[i]; !leaving[n.Object.Name] {
			for _, a := range n.Attached {
				if seen[a] {
					out[a] = true
				}
			}
		}
	}
	return out
}

// sum returns a hash that is equal for equal pods. It must not depend on the order of maps.
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

// sumOf returns a hash that is equal for volumes with equal selectors.
func (b *grouper) sumOf(volumes []*corev1.NodeSelector) uint64 {
	var out uint64
	for _, s := range volumes {
		for i := range s.NodeSelectorTerms {
			term := &s.NodeSelectorTerms[i]
			for _, all := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
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

// alike reports whether no rule distinguishes two pods.
func (b *grouper) alike(x, y *corev1.Pod) bool {
	for key := range b.labels {
		xv, xok := x.Labels[key]
		yv, yok := y.Labels[key]
		if xv != yv || xok != yok {
			return false
		}
	}
	return x.Namespace == y.Namespace && cluster.IsDaemonSets(x) == cluster.IsDaemonSets(y) &&
		alikeSpecs(&x.Spec, &y.Spec)
}

// alikeSpecs reports whether two specs have the same requests and rules.
func alikeSpecs(xs, ys *corev1.PodSpec) bool {
	return maps.Equal(xs.NodeSelector, ys.NodeSelector) &&
		slices.EqualFunc(xs.Containers, ys.Containers, alikeContainers) &&
		slices.EqualFunc(xs.InitContainers, ys.InitContainers, alikeContainers) &&
		alikeLists(xs.Overhead, ys.Overhead) && equal(xs.Resources, ys.Resources) && equal(xs.Affinity, ys.Affinity) &&
		(len(xs.Tolerations)+len(ys.Tolerations) == 0 || equality.Semantic.DeepEqual(xs.Tolerations, ys.Tolerations)) &&
		(len(xs.TopologySpreadConstraints)+len(ys.TopologySpreadConstraints) == 0 ||
			equality.Semantic.DeepEqual(xs.TopologySpreadConstraints, ys.TopologySpreadConstraints))
}

// equal compares the values of two pointers, most of which are nil or equal.
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
