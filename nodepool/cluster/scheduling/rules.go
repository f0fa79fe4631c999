package scheduling

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// rules are the rules about other pods that affect the pods of a group, in both directions.
type rules struct {
	group      *group
	topology   *topology
	affinity   []*counter // of pods that must be in its domain
	selfAffine bool       // its own pods are such pods
	anti       []*counter // of pods that must not be in its domain
	spreads    []*spread
	alone      bool // it excludes others of its group from its node

	matched   []*counter // of its pods
	owned     []*counter // of its pods as ones that exclude others
	forbidden []*counter // of pods that exclude it
}

// spread is a topologySpreadConstraint.
type spread struct {
	*counter
	rule     *corev1.TopologySpreadConstraint
	self     int // 1 if it counts the pods that have it
	eligible map[int32]bool
	least    int  // the count of the emptiest domain
	emptiest int  // the number of domains with that count
	stale    bool // these two must be computed again
	// own counts the pods of the included nodes by domain, and excluded are the other nodes; nil: all
	// nodes of a domain are included.
	own      map[int32]int
	excluded map[*place]bool
}

func (s *spread) at(domain int32) int {
	if s.own != nil {
		return s.own[domain]
	}
	return s.counter.at(domain)
}

// readRules returns the rules of each group, nil for one without any, and their topology.
func readRules(groups []*group, w *world, daemonSets []*appsv1.DaemonSet) ([]*rules, *topology) {
	t := newTopology(w)
	out := make([]*rules, len(groups))
	for i, g := range groups {
		out[i] = rulesOf(g, t)
	}
	t.prepare(daemonSets)
	for i, x := range out {
		if !x.relate() {
			out[i] = nil
		}
	}
	return out, t
}

// rulesOf reads the rules of a group.
func rulesOf(g *group, t *topology) *rules {
	out := &rules{group: g, topology: t}
	spec, namespace := &g.pod.Spec, g.pod.Namespace
	if terms := affinityTerms(spec); len(terms) > 0 {
		var matchers []matcher // a pod counts only if it matches all terms
		for i := range terms {
			matchers = append(matchers, t.matcherOf(&terms[i], namespace, false))
		}
		for i := range terms {
			out.affinity = append(out.affinity, t.counter(t.counters, terms[i].TopologyKey, false, matchers...))
		}
		out.selfAffine = out.affinity[0].matches(namespace, g.pod.Labels)
	}
	terms := antiAffinityTerms(spec)
	for i := range terms {
		m := t.matcherOf(&terms[i], namespace, true)
		out.anti = append(out.anti, t.counter(t.counters, terms[i].TopologyKey, false, m))
	}
	out.owned = t.ownersOf(namespace, terms)
	for i := range spec.TopologySpreadConstraints {
		if rule := &spec.TopologySpreadConstraints[i]; rule.WhenUnsatisfiable == corev1.DoNotSchedule {
			out.spreads = append(out.spreads, spreadOf(rule, g.pod, t))
		}
	}
	return out
}

func spreadOf(rule *corev1.TopologySpreadConstraint, pod *corev1.Pod, t *topology) *spread {
	selector := t.world.selector(rule.LabelSelector)
	for _, key := range rule.MatchLabelKeys {
		if value, ok := pod.Labels[key]; ok {
			of, _ := labels.SelectorFromSet(labels.Set{key: value}).Requirements()
			selector = selector.Add(of...)
		}
	}
	s := &spread{rule: rule}
	if selector.Matches(labels.Set(pod.Labels)) {
		s.self = 1
	}
	if selector.Empty() { // it matches the pod itself, but kube-scheduler counts no others
		selector = labels.Nothing()
	}
	m := matcher{namespaces: map[string]bool{pod.Namespace: true}, selector: selector}
	s.counter = t.counter(t.counters, rule.TopologyKey, true, m)
	return s
}

// relate finds the rules of others that affect the group, and reports whether any rule does.
func (x *rules) relate() bool {
	namespace, l := x.group.pod.Namespace, x.group.pod.Labels
	x.matched = x.topology.finders[0].find(namespace, l)
	x.forbidden = x.topology.finders[1].find(namespace, l)
	x.alone = slices.ContainsFunc(x.anti, func(c *counter) bool { return slices.Contains(x.matched, c) })
	return len(x.affinity)+len(x.anti)+len(x.spreads)+len(x.matched)+len(x.owned)+len(x.forbidden) > 0
}

// mutual reports whether the place of one pod of the group changes where the next one may run,
// apart from the same node.
func (x *rules) mutual() bool {
	host := slices.Index(x.topology.keys, corev1.LabelHostname)
	return len(x.affinity)+len(x.spreads) > 0 ||
		slices.ContainsFunc(x.anti, func(c *counter) bool { return c.key != host })
}

// begin finds the domains over which the pods of the group are spread: those of nodes that the
// constraint includes.
func (x *rules) begin(nodes *nodeSet) {
	for _, s := range x.spreads {
		s.eligible, s.stale, s.own, s.excluded = map[int32]bool{}, true, nil, nil
		if x.narrow(s) {
			s.own, s.excluded = map[int32]int{}, map[*place]bool{}
		}
		for _, at := range nodes.existing {
			x.consider(s, at)
		}
		for _, at := range nodes.open {
			if at.source == nil {
				x.consider(s, at)
			}
		}
	}
}

// narrow reports whether a constraint may include some nodes of a domain and not others, so that it
// needs its own counts.
func (x *rules) narrow(s *spread) bool {
	if x.topology.keys[s.key] == corev1.LabelHostname {
		return false
	}
	spec := &x.group.pod.Spec
	affinity := spec.Affinity
	chooses := len(spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil
	return len(x.spreads) > 1 || honors(s.rule.NodeTaintsPolicy, false) ||
		chooses && honors(s.rule.NodeAffinityPolicy, true)
}

func (x *rules) consider(s *spread, at *place) {
	domain := at.domains[s.key]
	switch {
	case at.gone || domain < 0 || s.own == nil && s.eligible[domain]:
	case !x.includes(s, at):
		if s.own != nil {
			s.excluded[at] = true
		}
	default:
		s.eligible[domain] = true
		if s.own != nil {
			s.own[domain] += at.count(x.topology, s.counter)
		}
	}
}

// includes reports whether a constraint includes a node.
func (x *rules) includes(s *spread, at *place) bool {
	if slices.ContainsFunc(x.spreads, func(other *spread) bool { return at.domains[other.key] < 0 }) {
		return false
	}
	if honors(s.rule.NodeAffinityPolicy, true) {
		if ok, err := x.group.affinity.Match(at.node); !ok || err != nil {
			return false
		}
	}
	return !honors(s.rule.NodeTaintsPolicy, false) || untolerated(x.group.pod, at.node) == nil
}

// level finds the emptiest domains, before each pod.
func (x *rules) level() {
	for _, s := range x.spreads {
		if !s.stale {
			continue
		}
		s.stale, s.least, s.emptiest = false, math.MaxInt, 0
		for domain := range s.eligible {
			n := s.at(domain)
			if n < s.least {
				s.least, s.emptiest = n, 0
			}
			if n == s.least {
				s.emptiest++
			}
		}
		if len(s.eligible) == 0 || s.rule.MinDomains != nil && len(s.eligible) < int(*s.rule.MinDomains) {
			s.least = 0
		}
	}
}

// allows reports whether other pods allow one of the group in a place.
func (x *rules) allows(at *place) bool {
	present := func(c *counter) bool { return c.at(at.domains[c.key]) > 0 }
	if slices.ContainsFunc(x.anti, present) || slices.ContainsFunc(x.forbidden, present) {
		return false
	}
	for _, s := range x.spreads {
		domain := at.domains[s.key]
		if domain < 0 || s.at(domain)+s.self-s.least > int(s.rule.MaxSkew) {
			return false
		}
	}
	return x.satisfiesAffinity(at)
}

// satisfiesAffinity reports whether the affinity of the group is satisfied in a place. The first pod of a
// series may run anywhere.
func (x *rules) satisfiesAffinity(at *place) bool {
	all, none := true, true
	for _, c := range x.affinity {
		if at.domains[c.key] < 0 {
			return false
		}
		all = all && c.at(at.domains[c.key]) > 0
		none = none && c.total == 0
	}
	return all || none && x.selfAffine
}

// allowsNew is allows for a node that does not exist yet, which may be a domain of its own.
func (x *rules) allowsNew(at *place) bool {
	if slices.ContainsFunc(at.daemons, func(pod *corev1.Pod) bool { return x.excludes(at, pod) }) {
		return false
	}
	before := make([]int, len(x.spreads))
	for i, s := range x.spreads {
		before[i] = s.least
		if domain := at.domains[s.key]; domain >= 0 && !s.eligible[domain] {
			s.least = 0
		}
	}
	ok := x.allows(at)
	for i, s := range x.spreads {
		s.least = before[i]
	}
	return ok
}

// excludes reports whether pods of the group and one of a DaemonSet exclude each other on a new
// node.
func (x *rules) excludes(at *place, daemon *corev1.Pod) bool {
	in := func(c *counter) bool { return at.domains[c.key] >= 0 }
	matches := func(c *counter) bool { return in(c) && c.matches(daemon.Namespace, daemon.Labels) }
	if slices.ContainsFunc(x.anti, matches) {
		return true
	}
	owned := x.topology.ownersOf(daemon.Namespace, antiAffinityTerms(&daemon.Spec))
	return slices.ContainsFunc(owned, func(c *counter) bool { return in(c) && slices.Contains(x.forbidden, c) })
}

// opened includes a node that was added for the group.
func (x *rules) opened(at *place) {
	for _, s := range x.spreads {
		domain := at.domains[s.key]
		if domain < 0 || s.eligible[domain] {
			continue
		}
		s.eligible[domain] = true
		switch n := s.at(domain); {
		case n < s.least:
			s.least, s.emptiest = n, 1
		case n == s.least:
			s.emptiest++
		}
		s.stale = s.stale || s.rule.MinDomains != nil
	}
}

// put counts n pods of the group in a place.
func (x *rules) put(at *place, n int) {
	for _, s := range x.spreads { // only a pod in the last of the emptiest domains raises the level
		if domain := at.domains[s.key]; s.self == 1 && s.at(domain) == s.least && s.eligible[domain] {
			s.emptiest--
			s.stale = s.stale || s.emptiest <= 0
		}
	}
	x.countOwn(at, n)
	for _, c := range x.matched {
		c.add(at.domains, n)
	}
	for _, c := range x.owned {
		c.add(at.domains, n)
	}
}

// remove counts one pod of the group less in the place that it leaves.
func (x *rules) remove(at *place) {
	for _, c := range x.matched {
		c.add(at.domains, -1)
	}
	for _, c := range x.owned {
		c.add(at.domains, -1)
	}
	x.countOwn(at, -1)
	for _, s := range x.spreads {
		s.stale = true
	}
}

// countOwn counts pods of the group for constraints with their own counts.
func (x *rules) countOwn(at *place, n int) {
	for _, s := range x.spreads {
		if s.own != nil && s.self == 1 && !s.excluded[at] {
			s.own[at.domains[s.key]] += n
		}
	}
}

// restrict excludes shapes in other domains from a new place, if these domains matter to the group.
func (x *rules) restrict(at *place, shapes []*shape) {
	if at.kind != added {
		return
	}
	same := func(key int, s *shape) bool {
		name := x.topology.keys[key]
		return s.node.Labels[name] == at.node.Labels[name]
	}
	for i, s := range shapes {
		for _, rules := range [][]*counter{x.affinity, x.anti, x.forbidden} {
			for _, c := range rules {
				at.allowed[i] = at.allowed[i] && same(c.key, s)
			}
		}
		for _, c := range x.spreads {
			at.allowed[i] = at.allowed[i] && same(c.key, s)
		}
	}
}
