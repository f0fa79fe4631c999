package scheduling

import (
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// topology is what other pods mean to the pods of a group, and these to others.
type topology struct {
	topologies *topologies
	affinity   []*counter // of pods that must be in its domain
	selfAffine bool       // it is such a pod itself
	anti       []*counter // of pods that must not be
	spreads    []*spread
	alone      bool // it keeps others of its group off its node

	matched   []*counter // that count it
	owned     []*counter // that count it as one that keeps others away
	forbidden []*counter // of those that keep it away
}

// spread is a rule of even distribution.
type spread struct {
	*counter
	rule     *corev1.TopologySpreadConstraint
	self     int // 1 if it counts the pods that it is of
	eligible map[int32]bool
	least    int  // the count of the emptiest domain
	emptiest int  // how many domains have no more
	stale    bool // these two must be found again
	// own are the pods of the included nodes by domain, and excluded the other nodes; nil: the rule includes all of
	// a domain.
	own      map[int32]int
	excluded map[*place]bool
}

func (s *spread) at(domain int32) int {
	if s.own != nil {
		return s.own[domain]
	}
	return s.counter.at(domain)
}

// labelsOfRules returns the labels that rules about other pods look at: those of pods, and those of bound ones.
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

func addLabelsOfTerms(to map[string]bool, terms []corev1.PodAffinityTerm) {
	for i := range terms {
		addLabelsOf(to, terms[i].LabelSelector)
	}
}

func addLabelsOf(to map[string]bool, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		to[key] = true
	}
	for _, e := range s.MatchExpressions {
		to[e.Key] = true
	}
}

func affinityTerms(s *corev1.PodSpec) []corev1.PodAffinityTerm {
	if s.Affinity == nil || s.Affinity.PodAffinity == nil {
		return nil
	}
	return s.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiAffinityTerms(s *corev1.PodSpec) []corev1.PodAffinityTerm {
	if s.Affinity == nil || s.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// rulesOf reads the rules of a group.
func (t *topologies) rulesOf(g *group) *topology {
	out := &topology{topologies: t}
	spec, namespace := &g.pod.Spec, g.pod.Namespace
	if terms := affinityTerms(spec); len(terms) > 0 {
		var matchers []matcher // a pod counts only if all terms are about it
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
			out.spreads = append(out.spreads, t.spreadOf(rule, g.pod))
		}
	}
	return out
}

func (t *topologies) spreadOf(rule *corev1.TopologySpreadConstraint, pod *corev1.Pod) *spread {
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

// relate finds the rules of others that are about a group. One that no rule is about has no topology.
func (t *topologies) relate(g *group) {
	x := g.topology
	x.matched = t.finders[0].find(g.pod.Namespace, g.pod.Labels)
	x.forbidden = t.finders[1].find(g.pod.Namespace, g.pod.Labels)
	x.alone = slices.ContainsFunc(x.anti, func(c *counter) bool { return slices.Contains(x.matched, c) })
	if len(x.affinity)+len(x.anti)+len(x.spreads)+len(x.matched)+len(x.owned)+len(x.forbidden) == 0 {
		g.topology = nil
	}
}

// mutual tells whether the place of one pod of the group changes where the next one may be, but for the same node.
func (x *topology) mutual() bool {
	host := slices.Index(x.topologies.keys, corev1.LabelHostname)
	return len(x.affinity)+len(x.spreads) > 0 || slices.ContainsFunc(x.anti, func(c *counter) bool { return c.key != host })
}

// begin finds the domains among which the pods of a group are to be spread: those of nodes that the rule includes.
func (x *topology) begin(p *packer, g *group) {
	for _, s := range x.spreads {
		s.eligible, s.stale, s.own, s.excluded = map[int32]bool{}, true, nil, nil
		if x.narrow(s, g) {
			s.own, s.excluded = map[int32]int{}, map[*place]bool{}
		}
		for _, at := range p.nodes {
			x.consider(s, at, g)
		}
		for _, at := range p.places {
			if at.source == nil {
				x.consider(s, at, g)
			}
		}
	}
}

// narrow reports whether a rule may include some nodes of a domain and not others, so that it counts pods for itself.
func (x *topology) narrow(s *spread, g *group) bool {
	if x.topologies.keys[s.key] == corev1.LabelHostname {
		return false
	}
	affinity := g.pod.Spec.Affinity
	chooses := len(g.pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil
	return len(x.spreads) > 1 || honors(s.rule.NodeTaintsPolicy, false) ||
		chooses && honors(s.rule.NodeAffinityPolicy, true)
}

func honors(policy *corev1.NodeInclusionPolicy, otherwise bool) bool {
	if policy == nil {
		return otherwise
	}
	return *policy == corev1.NodeInclusionPolicyHonor
}

func (x *topology) consider(s *spread, at *place, g *group) {
	domain := at.domains[s.key]
	switch {
	case at.gone || domain < 0 || s.own == nil && s.eligible[domain]:
	case !x.includes(s, at, g):
		if s.own != nil {
			s.excluded[at] = true
		}
	default:
		s.eligible[domain] = true
		if s.own != nil {
			s.own[domain] += x.topologies.countIn(at, s.counter)
		}
	}
}

// includes reports whether a rule looks at a node.
func (x *topology) includes(s *spread, at *place, g *group) bool {
	if slices.ContainsFunc(x.spreads, func(other *spread) bool { return at.domains[other.key] < 0 }) {
		return false
	}
	if honors(s.rule.NodeAffinityPolicy, true) {
		if ok, err := g.affinity.Match(at.node); !ok || err != nil {
			return false
		}
	}
	return !honors(s.rule.NodeTaintsPolicy, false) || untolerated(g.pod, at.node) == nil
}

// level finds the emptiest domains, before each pod.
func (x *topology) level() {
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

// allows tells whether other pods let one of the group be in a place.
func (x *topology) allows(at *place) bool {
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
	return x.befriended(at)
}

// befriended tells whether those that the pod must be with are there; the first of a series may begin anywhere.
func (x *topology) befriended(at *place) bool {
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

// allowsNew is allows for a node that is not there yet: it may be a domain of its own.
func (x *topology) allowsNew(at *place) bool {
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

// excludes reports whether pods of the group and one of a DaemonSet keep each other off a new node.
func (x *topology) excludes(at *place, daemon *corev1.Pod) bool {
	in := func(c *counter) bool { return at.domains[c.key] >= 0 }
	if slices.ContainsFunc(x.anti, func(c *counter) bool { return in(c) && c.matches(daemon.Namespace, daemon.Labels) }) {
		return true
	}
	owned := x.topologies.ownersOf(daemon.Namespace, antiAffinityTerms(&daemon.Spec))
	return slices.ContainsFunc(owned, func(c *counter) bool { return in(c) && slices.Contains(x.forbidden, c) })
}

// opened tells of a node that was added for the group.
func (x *topology) opened(at *place) {
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

// put counts pods of the group in a place.
func (x *topology) put(at *place, n int) {
	for _, s := range x.spreads { // only a pod in the last of the emptiest domains raises the level
		if domain := at.domains[s.key]; s.self == 1 && s.at(domain) == s.least && s.eligible[domain] {
			s.emptiest--
			s.stale = s.stale || s.emptiest <= 0
		}
	}
	x.countOwn(at, n)
	for _, c := range x.matched {
		c.add(at, n)
	}
	for _, c := range x.owned {
		c.add(at, n)
	}
}

// remove counts one pod of the group less in a place that it leaves.
func (x *topology) remove(at *place) {
	for _, c := range x.matched {
		c.add(at, -1)
	}
	for _, c := range x.owned {
		c.add(at, -1)
	}
	x.countOwn(at, -1)
	for _, s := range x.spreads {
		s.stale = true
	}
}

// countOwn counts pods of the group for the rules that count for themselves.
func (x *topology) countOwn(at *place, n int) {
	for _, s := range x.spreads {
		if s.own != nil && s.self == 1 && !s.excluded[at] {
			s.own[at.domains[s.key]] += n
		}
	}
}

// restrict leaves to a place the shapes that are in the same domains as far as they matter to the group.
func (x *topology) restrict(at *place, shapes []*shape) {
	if at.kind != added {
		return
	}
	same := func(key int, s *shape) bool {
		name := x.topologies.keys[key]
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
