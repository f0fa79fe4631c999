package scheduling

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
)

// place is a node of a packing: an existing one, one that is being launched or a new one.
type place struct {
	kind    placeKind
	node    *corev1.Node
	free    vector
	whole   vector // of an existing node, without its DaemonSets
	ports   []corev1.ContainerPort
	domains []int32       // see [topology]
	rank    refusal       // of an existing node: see [joins]
	shape   int           // of a new node
	daemons []*corev1.Pod // of a new node: the pods of DaemonSets that it will run
	allowed []bool        // of a new node, by shape: whether that shape could run its pods as well
	takes   []taken

	source   *cluster.Node // of an existing node, even if it counts as being launched
	pods     []kindCount   // of the same
	lost     []taken       // pods that have left
	leaving  bool          // it is being drained
	gone     bool          // and has been deleted
	attached []cluster.Attachment
}

// taken is a number of pods of a group in a place.
type taken struct {
	group   *group
	n       int
	matched []*counter // that count these pods
}

type placeKind int

const (
	existing placeKind = iota
	onTheWay
	added
)

// count returns the pods of a place that belong to a counter: the original ones without those that
// have left, and those placed.
func (at *place) count(t *topology, c *counter) (n int) {
	for _, k := range at.pods {
		if slices.Contains(t.countersOf(k.kind), c) {
			n += int(k.staying)
		}
	}
	for i, list := range [][]taken{at.takes, at.lost} {
		for _, some := range list {
			if slices.Contains(some.matched, c) {
				n += some.n * (1 - 2*i)
			}
		}
	}
	return n
}

// take adds n pods of a group, which belong to these counters.
func (at *place) take(g *group, matched []*counter, n int) {
	if last := len(at.takes) - 1; last >= 0 && at.takes[last].group == g {
		at.takes[last].n += n
		return
	}
	at.takes = append(at.takes, taken{g, n, matched})
}

// nodeSet is the nodes of one packing.
type nodeSet struct {
	dimensions dimensions
	catalog    catalog
	topology   *topology
	existing   []*place          // usable or not: rules count their pods
	open       []*place          // that take pods, in the order in which they are tried
	leaving    map[string]*place // existing nodes that are being emptied, by name
	inZone     map[string]int    // nodes that are being launched or new
}

// addExisting makes places of the nodes of a world. Newly ready ones come last among the open ones. The
// nodes in further leave, in addition to those that are being drained.
func (s *nodeSet) addExisting(in *Input, w *world, further map[string]bool) {
	all := make([]place, len(in.Nodes))
	known := len(s.dimensions) == len(w.dimensions)
	vectors := make(vector, 0, len(in.Nodes)*(len(w.dimensions)+firstOther))
	s.existing, s.open = make([]*place, len(all)), make([]*place, 0, len(all))
	for i := range in.Nodes {
		n, state := &in.Nodes[i], &w.nodes[i]
		at := &all[i]
		*at = place{kind: existing, node: n.Object, source: n, pods: state.pods}
		emptied := (n.Leaving || in.Leaving[n.Object.Name]) && !n.Stalled(in.Now)
		at.leaving = emptied || further[n.Object.Name]
		if at.leaving {
			at.node = leavingNode(n.Object)
			s.leaving[n.Object.Name] = at
		}
		usable := state.takesPods && !at.leaving
		if usable {
			vectors = append(vectors, state.free...)
			at.free, at.whole = vectors[len(vectors)-len(state.free):], state.whole
			if !known {
				at.free, at.whole = roomOf(s.dimensions, n, in)
			}
			s.join(at, n, in)
		}
		at.domains = s.topology.domainsOf(at.node)
		s.existing[i] = at
		s.topology.count(at.domains, at.pods)
		if !usable || at.free[slots] <= 0 {
			continue
		}
		at.ports, at.rank, at.attached = slices.Clip(state.ports), state.rank, n.Attached
		s.open = append(s.open, at)
	}
	slices.SortStableFunc(s.open, func(x, y *place) int { return cmp.Compare(x.kind, y.kind) })
}

// leavingNode returns a Node with the taints of a removal.
func leavingNode(n *corev1.Node) *corev1.Node {
	taints := append(slices.Clone(n.Spec.Taints),
		corev1.Taint{Key: cluster.Removing, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	return &corev1.Node{ObjectMeta: n.ObjectMeta, Spec: corev1.NodeSpec{Taints: taints}}
}

// join makes a recently launched node look as it will once it is initialized: without the taints
// that are removed, with the labels that it awaits, and with the resources that a device plugin has
// yet to register. An initialized node does not change.
func (s *nodeSet) join(at *place, n *cluster.Node, in *Input) {
	launched, ok := in.NewlyReady[n.Object.Name]
	if !ok {
		return
	}
	as := s.catalog.launchedAs(launched)
	lacking := lackingIn(n, as, s.dimensions)
	taints := slices.DeleteFunc(slices.Clone(n.Object.Spec.Taints), func(t corev1.Taint) bool {
		return passing(&t, in.Template.StartupTaints)
	})
	labels := awaited(n.Object, in.Template.Labels)
	if len(lacking)+len(labels) == 0 && len(taints) == len(n.Object.Spec.Taints) {
		return
	}
	at.kind = onTheWay
	at.node = &corev1.Node{ObjectMeta: *n.Object.ObjectMeta.DeepCopy(), Spec: corev1.NodeSpec{Taints: taints}}
	if at.node.Labels == nil {
		at.node.Labels = map[string]string{}
	}
	maps.Copy(at.node.Labels, labels)
	for i, amount := range lacking {
		at.free[i] += amount
	}
	if as == nil {
		return
	}
	here := s.dimensions.vector(n.DaemonSets)
	for i, all := range as.daemons {
		at.free[i] -= max(0, all-here[i])
	}
	if AwaitsCloud(n.Object) {
		at.node.Labels = labelsOf(as, launched, n.Object)
	}
}

// addLaunched makes places of launched nodes. One that matches none of the offers counts as the
// first offer.
func (s *nodeSet) addLaunched(launched []fleet.Placement) {
	if len(s.catalog.shapes) == 0 {
		return
	}
	for _, l := range launched {
		s.add(onTheWay, max(0, s.catalog.nearest(l)), l.Zone)
	}
}

// add makes a place of a node that does not exist yet.
func (s *nodeSet) add(k placeKind, shape int, zone string) *place {
	at := s.imagine(k, shape, zone)
	s.topology.settle(at.domains)
	s.topology.countDaemons(at.domains, at.daemons)
	s.open = append(s.open, at)
	s.inZone[zone]++
	return at
}

// imagine returns the place that add would add, without adding it.
func (s *nodeSet) imagine(k placeKind, shape int, zone string) *place {
	of := s.catalog.shapes[shape]
	at := &place{
		kind: k, node: of.node, shape: shape, daemons: of.pods,
		free: slices.Clone(of.free), ports: slices.Clone(of.ports),
	}
	if zone != of.offer.Zone && zone != "" {
		at.node = of.node.DeepCopy()
		at.node.Labels[corev1.LabelTopologyZone] = zone
	}
	at.domains = s.topology.domainsOf(at.node)
	at.allowed = make([]bool, len(s.catalog.shapes))
	for i := range at.allowed {
		at.allowed[i] = true
	}
	return at
}
