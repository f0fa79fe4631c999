package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// topology counts pods by the domains (hosts, zones, …) of their nodes, for all rules of pods about
// other pods. The domains of a node are a slice: for each topology the number of the domain, or -1
// if the node is in none.
type topology struct {
	keys    []string           // the topologies that some rule names
	domains []map[string]int32 // of each topology, by the value of the label
	sizes   []int32            // the number of domains of each topology, including new hosts

	counters map[string]*counter // of pods that rules select
	owners   map[string]*counter // of pods that exclude others
	finders  [2]*finder          // of both
	world    *world
	matching [][]*counter // by the number of a kind; nil: not searched yet
	owning   [][]*counter // by the number of a kind
}

// none is an empty list of counters.
var none = []*counter{}

func newTopology(w *world) *topology {
	return &topology{
		counters: map[string]*counter{}, owners: map[string]*counter{}, world: w,
		matching: make([][]*counter, len(w.kinds)), owning: make([][]*counter, len(w.kinds)),
	}
}

// keyOf numbers a topology.
func (t *topology) keyOf(key string) int {
	if i := slices.Index(t.keys, key); i >= 0 {
		return i
	}
	t.keys = append(t.keys, key)
	t.domains = append(t.domains, map[string]int32{})
	t.sizes = append(t.sizes, 0)
	return len(t.keys) - 1
}

// domainsOf returns the domains of a node. A new node is its own host, numbered by settle.
func (t *topology) domainsOf(n *corev1.Node) []int32 {
	out := make([]int32, len(t.keys))
	for i, key := range t.keys {
		value, ok := n.Labels[key]
		switch {
		case !ok:
			out[i] = -1
		case value == newNode:
			out[i] = math.MaxInt32
		default:
			id, known := t.domains[i][value]
			if !known {
				id = t.sizes[i]
				t.domains[i][value] = id
				t.sizes[i]++
			}
			out[i] = id
		}
	}
	return out
}

// settle numbers the host of a new node.
func (t *topology) settle(domains []int32) {
	for i, domain := range domains {
		if domain == math.MaxInt32 {
			domains[i] = t.sizes[i]
			t.sizes[i]++
		}
	}
}

// count counts the pods of a node.
func (t *topology) count(domains []int32, pods []kindCount) {
	if len(t.keys) == 0 {
		return
	}
	for _, k := range pods {
		for _, c := range t.countersOf(k.kind) {
			n := k.n
			if c.lasting {
				n = k.staying
			}
			c.add(domains, int(n))
		}
		for _, c := range t.owning[k.kind] {
			c.add(domains, int(k.n))
		}
	}
}

// countDaemons counts the pods of DaemonSets on a new node.
func (t *topology) countDaemons(domains []int32, daemons []*corev1.Pod) {
	for _, pod := range daemons {
		for _, c := range t.finders[0].find(pod.Namespace, pod.Labels) {
			c.add(domains, 1)
		}
		for _, c := range t.ownersOf(pod.Namespace, antiAffinityTerms(&pod.Spec)) {
			c.add(domains, 1)
		}
	}
}

// uncount removes one pod of a node.
func (t *topology) uncount(domains []int32, pod *cluster.Pod) {
	if len(t.keys) == 0 {
		return
	}
	k := t.world.index[pod.Kind]
	for _, c := range t.countersOf(k) {
		if !c.lasting || !pod.Leaving {
			c.add(domains, -1)
		}
	}
	for _, c := range t.owning[k] {
		c.add(domains, -1)
	}
}

// countersOf returns the counters of the pods of a kind.
func (t *topology) countersOf(kind int32) []*counter {
	if t.matching[kind] == nil {
		k := t.world.kinds[kind]
		if t.matching[kind] = t.finders[0].find(k.Namespace, k.Labels); t.matching[kind] == nil {
			t.matching[kind] = none
		}
	}
	return t.matching[kind]
}

// counter returns the shared counter of equal rules.
func (t *topology) counter(of map[string]*counter, key string, lasting bool, matchers ...matcher) *counter {
	var name strings.Builder
	fmt.Fprintf(&name, "%s %t", key, lasting)
	for _, m := range matchers {
		fmt.Fprintf(&name, " %v %t %s", m.namespaces, m.selector.Empty(), m.selector) // all and none both print as ""
	}
	c := of[name.String()]
	if c == nil {
		c = &counter{key: t.keyOf(key), matchers: matchers, lasting: lasting}
		of[name.String()] = c
	}
	return c
}

// ownersOf returns the counters of pods that exclude others by these terms.
func (t *topology) ownersOf(namespace string, terms []corev1.PodAffinityTerm) []*counter {
	var out []*counter
	for i := range terms {
		out = append(out, t.counter(t.owners, terms[i].TopologyKey, false, t.matcherOf(&terms[i], namespace, true)))
	}
	return out
}

// matcherOf converts a term. The labels of namespaces are unknown: a selector of them means all, or
// only those listed by name.
func (t *topology) matcherOf(term *corev1.PodAffinityTerm, namespace string, all bool) matcher {
	m := matcher{selector: t.world.selector(term.LabelSelector), namespaces: map[string]bool{}}
	for _, name := range term.Namespaces {
		m.namespaces[name] = true
	}
	s := term.NamespaceSelector
	switch {
	case s == nil && len(term.Namespaces) == 0:
		m.namespaces[namespace] = true
	case s != nil && (all || len(s.MatchLabels)+len(s.MatchExpressions) == 0):
		m.namespaces = nil
	}
	return m
}

// prepare reads the rules by which pods of nodes and of DaemonSets exclude others, after all other
// rules.
func (t *topology) prepare(daemonSets []*appsv1.DaemonSet) {
	for i, k := range t.world.kinds {
		if len(k.AntiAffinity) > 0 {
			t.owning[i] = t.ownersOf(k.Namespace, k.AntiAffinity)
		}
	}
	for _, ds := range daemonSets {
		t.ownersOf(ds.Namespace, antiAffinityTerms(&ds.Spec.Template.Spec))
	}
	t.finders = [2]*finder{newFinder(t.counters), newFinder(t.owners)}
}
