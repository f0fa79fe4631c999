package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/foresail/foresail/nodepool/cluster"
)

// topologies count pods by the domains (hosts, zones, …) that they are in, for all rules of pods about other pods.
type topologies struct {
	keys    []string           // of topologies that some rule is about
	domains []map[string]int32 // of each of them, by the value of the label
	sizes   []int32            // how many domains each has, new hosts included

	counters map[string]*counter // of pods that rules look for
	owners   map[string]*counter // of pods that keep others away
	finders  [2]*finder          // of both
	world    *world
	matching [][]*counter // by the number of a kind; nil: it has not been looked for
	owning   [][]*counter // the same
}

// none is no counters.
var none = []*counter{}

// counter counts the pods that all of its matchers match, or those that own a rule.
type counter struct {
	key      int
	matchers []matcher
	lasting  bool // those that are leaving do not count
	total    int
	in       []int32 // by domain
}

// matcher is what a rule says of other pods.
type matcher struct {
	namespaces map[string]bool // nil = all
	selector   labels.Selector
}

func (m matcher) matches(namespace string, l map[string]string) bool {
	return (m.namespaces == nil || m.namespaces[namespace]) && m.selector.Matches(labels.Set(l))
}

func (c *counter) matches(namespace string, l map[string]string) bool {
	return !slices.ContainsFunc(c.matchers, func(m matcher) bool { return !m.matches(namespace, l) })
}

func (c *counter) at(domain int32) int {
	if domain < 0 || int(domain) >= len(c.in) {
		return 0
	}
	return int(c.in[domain])
}

func (c *counter) add(at *place, n int) {
	domain := at.domains[c.key]
	if domain < 0 {
		return
	}
	for int(domain) >= len(c.in) {
		c.in = append(c.in, 0)
	}
	c.in[domain] += int32(n)
	c.total += n
}

// newTopologies reads the rules of pending pods, and those by which pods that have a node keep others away.
func newTopologies(groups []*group, w *world, daemonSets []*appsv1.DaemonSet) *topologies {
	t := &topologies{
		counters: map[string]*counter{}, owners: map[string]*counter{}, world: w,
		matching: make([][]*counter, len(w.kinds)), owning: make([][]*counter, len(w.kinds)),
	}
	for _, g := range groups {
		g.topology = t.rulesOf(g)
	}
	for i, k := range w.kinds {
		if len(k.AntiAffinity) > 0 {
			t.owning[i] = t.ownersOf(k.Namespace, k.AntiAffinity)
		}
	}
	for _, ds := range daemonSets {
		t.ownersOf(ds.Namespace, antiAffinityTerms(&ds.Spec.Template.Spec))
	}
	t.finders = [2]*finder{newFinder(t.counters), newFinder(t.owners)}
	for _, g := range groups {
		t.relate(g)
	}
	return t
}

// keyOf numbers a topology.
func (t *topologies) keyOf(key string) int {
	if i := slices.Index(t.keys, key); i >= 0 {
		return i
	}
	t.keys = append(t.keys, key)
	t.domains = append(t.domains, map[string]int32{})
	t.sizes = append(t.sizes, 0)
	return len(t.keys) - 1
}

// domainsOf tells which domains a node is in. A new node is a host of its own, numbered when it is settled.
func (t *topologies) domainsOf(n *corev1.Node) []int32 {
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

// settle makes a new node a host among the others.
func (t *topologies) settle(at *place) {
	for i, domain := range at.domains {
		if domain == math.MaxInt32 {
			at.domains[i] = t.sizes[i]
			t.sizes[i]++
		}
	}
}

// count counts the pods of a node.
func (t *topologies) count(at *place) {
	if len(t.keys) == 0 {
		return
	}
	for _, k := range at.pods {
		for _, c := range t.countersOf(k.kind) {
			n := k.n
			if c.lasting {
				n = k.staying
			}
			c.add(at, int(n))
		}
		for _, c := range t.owning[k.kind] {
			c.add(at, int(k.n))
		}
	}
}

// countDaemons counts the pods of DaemonSets on a new node.
func (t *topologies) countDaemons(at *place) {
	for _, pod := range at.daemons {
		for _, c := range t.finders[0].find(pod.Namespace, pod.Labels) {
			c.add(at, 1)
		}
		for _, c := range t.ownersOf(pod.Namespace, antiAffinityTerms(&pod.Spec)) {
			c.add(at, 1)
		}
	}
}

// countIn counts the pods in a place that a counter is for: those that it had, without those that have left, and
// with those placed.
func (t *topologies) countIn(at *place, c *counter) (n int) {
	for _, k := range at.pods {
		if slices.Contains(t.countersOf(k.kind), c) {
			n += int(k.staying)
		}
	}
	for i, list := range [][]taken{at.takes, at.lost} {
		for _, some := range list {
			if g := some.group; g.topology != nil && slices.Contains(g.topology.matched, c) {
				n += some.n * (1 - 2*i)
			}
		}
	}
	return n
}

// uncount counts one pod of a node less.
func (t *topologies) uncount(pod *cluster.Pod, at *place) {
	if len(t.keys) == 0 {
		return
	}
	k := t.world.index[pod.Kind]
	for _, c := range t.countersOf(k) {
		if !c.lasting || !pod.Leaving {
			c.add(at, -1)
		}
	}
	for _, c := range t.owning[k] {
		c.add(at, -1)
	}
}

// countersOf returns those that count the pods of a kind.
func (t *topologies) countersOf(kind int32) []*counter {
	if t.matching[kind] == nil {
		k := t.world.kinds[kind]
		if t.matching[kind] = t.finders[0].find(k.Namespace, k.Labels); t.matching[kind] == nil {
			t.matching[kind] = none
		}
	}
	return t.matching[kind]
}

// counter returns the one counter of equal rules.
func (t *topologies) counter(of map[string]*counter, key string, lasting bool, matchers ...matcher) *counter {
	var name strings.Builder
	fmt.Fprintf(&name, "%s %t", key, lasting)
	for _, m := range matchers {
		fmt.Fprintf(&name, " %v %t %s", m.namespaces, m.selector.Empty(), m.selector) // all and none are both "" as text
	}
	c := of[name.String()]
	if c == nil {
		c = &counter{key: t.keyOf(key), matchers: matchers, lasting: lasting}
		of[name.String()] = c
	}
	return c
}

func (t *topologies) ownersOf(namespace string, terms []corev1.PodAffinityTerm) []*counter {
	var out []*counter
	for i := range terms {
		out = append(out, t.counter(t.owners, terms[i].TopologyKey, false, t.matcherOf(&terms[i], namespace, true)))
	}
	return out
}

// matcherOf reads a term. The labels of namespaces are not known: a selector of them is all, or none but those named.
func (t *topologies) matcherOf(term *corev1.PodAffinityTerm, namespace string, all bool) matcher {
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

// selectorOf reads a selector that the API server has checked.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}
