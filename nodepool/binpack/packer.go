package binpack

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
)

// place is a node that takes pods: one that is there, one on its way or a new one.
type place struct {
	kind    kind
	node    *corev1.Node
	exists  bool                // also one that joins, which is on its way
	pods    []*clusterstate.Pod // of one that exists
	free    vector
	whole   vector // of one that is there, after its DaemonSets
	ports   []corev1.ContainerPort
	domains []int32       // by topology key: which one it is in; -1 = none
	rank    refusal       // of one that is there: see [joins]
	shape   int           // of a new one
	daemons []*corev1.Pod // of a new one: the pods of DaemonSets that it will run
	allowed []bool        // of a new one, by shape: whether that could run its pods as well
	takes   []taken
}

// taken is pods of a group in a place.
type taken struct {
	group *group
	n     int
}

type kind int

const (
	there kind = iota
	onTheWay
	added
)

// packer is the state of one packing.
type packer struct {
	dimensions dimensions
	shapes     []*shape
	groups     []*group
	joins      joins
	stuck      []plan.Unhelped // pods in no group, as no node could run them now
	topologies *topologies
	nodes      []*place // all that there are, usable or not: their pods matter to others
	places     []*place // that take pods, in the order in which they are tried
	inZone     map[string]int
	full       bool // no node is added
	priced     bool // costs decide what is added
}

func newPacker(in Input) *packer {
	p := &packer{dimensions: newDimensions(), inZone: map[string]int{}, joins: joinsOf(in.Nodes)}
	p.groups = groupsOf(in.Pods, p.joins, labelsOfRules(&in))
	for _, pod := range in.Pods {
		if pod.Stuck != "" {
			p.stuck = append(p.stuck, plan.Unhelped{Pod: pod.Pod.Namespace + "/" + pod.Pod.Name, Reason: pod.Stuck})
		}
	}
	requests := make([]corev1.ResourceList, len(p.groups))
	for i, g := range p.groups {
		requests[i] = clusterstate.Requests(g.pod)
		p.dimensions.add(requests[i])
	}
	for _, o := range in.Offers {
		if known(o) {
			s := newShape(o, &in, p.dimensions)
			s.index = len(p.shapes)
			p.shapes = append(p.shapes, s)
		}
	}
	p.price(in.Costs)
	whole := p.whole(in.Nodes)
	for i, g := range p.groups {
		p.judge(g, requests[i], whole)
	}
	p.topologies = newTopologies(p.groups, in.Nodes, in.DaemonSets)
	slices.SortStableFunc(p.groups, byDifficulty)
	for i, g := range p.groups {
		g.order = i
	}
	p.placeNodes(&in)
	return p
}

// byDifficulty puts groups first that fewest shapes could run, then those that are picky, then large ones.
func byDifficulty(x, y *group) int {
	return cmp.Or(cmp.Compare(x.shapes, y.shapes), cmp.Compare(y.picky(), x.picky()), cmp.Compare(y.size, x.size))
}

// pack finds a place for every pod that has one.
func (p *packer) pack(launched []plan.Placement) {
	p.placeOnTheWay(launched)
	left := p.groups
	for progress := true; progress; { // a pod may want to be with one that has its place only now
		progress = false
		var again []*group
		for _, g := range left {
			before := g.left
			p.place(g)
			progress = progress || g.left < before
			if g.left > 0 {
				again = append(again, g)
			}
		}
		left = again
	}
}

// whole is what the sizes of pods are measured by: a new node, or the first of those that are there if none can be added.
func (p *packer) whole(nodes []clusterstate.Node) vector {
	if len(p.shapes) > 0 {
		return p.shapes[0].free
	}
	var of corev1.ResourceList
	if len(nodes) > 0 {
		of = nodes[0].Object.Status.Allocatable
	}
	return p.dimensions.vector(of)
}

// judge finds the shapes that could run the pods of a group.
func (p *packer) judge(g *group, requests corev1.ResourceList, whole vector) {
	g.request = p.dimensions.vector(requests)
	if g.request[cpu] == 0 && g.request[memory] == 0 {
		g.request[plain] = 1
	}
	g.size = g.request.share(whole)
	g.takes = make([]bool, len(p.shapes))
	if clusterstate.IsDaemonSets(g.pod) {
		g.obstacle = &obstacle{why: "it is of a DaemonSet and belongs to a node that is there"}
		return
	}
	for i, s := range p.shapes {
		o := s.takes(g, p.dimensions)
		if o == nil {
			g.takes[i] = true
			g.shapes++
		} else if g.obstacle == nil || o.rank > g.obstacle.rank {
			g.obstacle = o
		}
	}
}

// placeNodes makes places of the nodes that are there and take pods. Those that join come last.
func (p *packer) placeNodes(in *Input) {
	for i := range in.Nodes {
		n := &in.Nodes[i]
		at := &place{kind: there, node: n.Object, exists: true, pods: n.Pods}
		at.free = p.dimensions.vector(n.Object.Status.Allocatable)
		at.whole = slices.Clone(at.free)
		at.whole.take(p.dimensions.vector(n.DaemonSets), 1)
		at.free.take(p.dimensions.vector(n.Requested), 1)
		at.free[plain] = math.MaxInt32
		usable := n.Ready && !n.Object.Spec.Unschedulable
		if usable {
			p.joining(at, n, in)
		}
		at.domains = p.topologies.domainsOf(at.node)
		p.nodes = append(p.nodes, at)
		p.topologies.count(n.Pods, at)
		if !usable || at.free[slots] <= 0 {
			continue
		}
		for _, pod := range n.Pods {
			at.ports = append(at.ports, pod.Ports...)
		}
		at.rank = p.joins.rankOf(n)
		p.places = append(p.places, at)
	}
	slices.SortStableFunc(p.places, func(x, y *place) int { return cmp.Compare(x.kind, y.kind) })
}

// placeOnTheWay makes places of launched nodes. One that none of the offers is like is taken for the first of all.
func (p *packer) placeOnTheWay(launched []plan.Placement) {
	if len(p.shapes) == 0 {
		return
	}
	for _, l := range launched {
		p.add(onTheWay, max(0, p.nearest(l)), l.Zone)
	}
}

// nearest returns the shape that a launched node is most like: the first of its type and zone, of its type, of its zone; -1 if
// there is none.
func (p *packer) nearest(launched plan.Placement) int {
	best, points := -1, 0
	for i, s := range p.shapes {
		score := 0
		if s.offer.InstanceType == launched.InstanceType {
			score += 2
		}
		if s.offer.Zone == launched.Zone {
			score++
		}
		if score > points {
			best, points = i, score
		}
	}
	return best
}

// add makes a place of a node that is not there yet.
func (p *packer) add(k kind, shape int, zone string) *place {
	at := p.imagine(k, shape, zone)
	p.topologies.settle(at)
	p.topologies.countDaemons(at)
	p.places = append(p.places, at)
	p.inZone[zone]++
	return at
}

// imagine makes a place of a node that nobody has asked for yet.
func (p *packer) imagine(k kind, shape int, zone string) *place {
	s := p.shapes[shape]
	at := &place{kind: k, node: s.node, free: slices.Clone(s.free), ports: slices.Clone(s.ports), shape: shape, daemons: s.pods}
	if zone != s.offer.Zone && zone != "" {
		at.node = s.node.DeepCopy()
		at.node.Labels[corev1.LabelTopologyZone] = zone
	}
	at.domains = p.topologies.domainsOf(at.node)
	at.allowed = make([]bool, len(p.shapes))
	for i := range at.allowed {
		at.allowed[i] = true
	}
	return at
}

// room tells how many pods of a group a place takes by itself.
func (p *packer) room(g *group, at *place) int {
	if at.kind == there && g.refusal.covers(at.rank) {
		return 0
	}
	n := at.free.times(g.request)
	if n == 0 {
		return 0
	}
	if len(g.ports) > 0 {
		if conflict(g.ports, at.ports) {
			return 0
		}
		n = 1
	}
	if at.kind == added && at.node == p.shapes[at.shape].node {
		if !g.takes[at.shape] {
			return 0
		}
	} else if g.runsOn(at.node) != nil {
		return 0
	}
	return n
}

// place finds places for as many pods of a group as it can.
func (p *packer) place(g *group) {
	if g.topology != nil && g.topology.mutual() {
		p.placeEach(g)
		return
	}
	for _, at := range p.places {
		if g.left == 0 {
			return
		}
		p.put(g, at, p.most(g, at))
	}
	for g.left > 0 {
		at := p.open(g)
		if at == nil {
			return
		}
		p.put(g, at, p.most(g, at))
	}
}

// most tells how many pods of a group a place takes if they do not matter to each other but on one node.
func (p *packer) most(g *group, at *place) int {
	n := min(p.room(g, at), g.left)
	if n == 0 || g.topology == nil {
		return n
	}
	if !g.topology.allows(at) {
		return 0
	}
	if g.topology.alone {
		return 1
	}
	return n
}

// placeEach places pods one after the other, as each of them changes where the next one may be.
func (p *packer) placeEach(g *group) {
	g.topology.begin(p, g)
	candidates := slices.DeleteFunc(slices.Clone(p.places), func(at *place) bool { return p.room(g, at) == 0 })
	for g.left > 0 {
		g.topology.level()
		i := slices.IndexFunc(candidates, g.topology.allows)
		var at *place
		if i >= 0 {
			at = candidates[i]
		} else if at = p.open(g); at == nil {
			return
		} else {
			i = len(candidates)
			candidates = append(candidates, at)
		}
		p.put(g, at, 1)
		if p.room(g, at) == 0 {
			candidates = slices.Delete(candidates, i, i+1)
		}
	}
}

// put puts pods of a group in a place.
func (p *packer) put(g *group, at *place, n int) {
	if n == 0 {
		return
	}
	if last := len(at.takes) - 1; last >= 0 && at.takes[last].group == g {
		at.takes[last].n += n
	} else {
		at.takes = append(at.takes, taken{g, n})
	}
	at.free.take(g.request, n)
	at.ports = append(at.ports, g.ports...)
	g.left -= n
	if at.kind == there {
		g.room += n
	}
	for i := range at.allowed {
		at.allowed[i] = at.allowed[i] && g.takes[i]
	}
	if g.topology != nil {
		g.topology.put(at, n)
		g.topology.restrict(at, p.shapes)
	}
}

// open adds a node for pods of a group: of the first type that takes them and can be launched, or of the one that costs least
// for what it would take, in the zone to which fewest have been added. It returns nil if none would help.
func (p *packer) open(g *group) *place {
	best := -1
	worth := p.worth(g)
	for i, s := range p.shapes {
		if p.full || !g.takes[i] || best >= 0 && !p.better(s, p.shapes[best], worth) {
			continue
		}
		if g.topology == nil || g.topology.allowsNew(p.imagine(added, i, s.offer.Zone)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	at := p.add(added, best, p.shapes[best].offer.Zone)
	if g.topology != nil {
		g.topology.opened(at)
	}
	return at
}

// better compares a shape with one before it in the order of preference. worth is nil unless costs decide.
func (p *packer) better(s, than *shape, worth func(*shape) float64) bool {
	if s.cooling != than.cooling {
		return than.cooling
	}
	if s.offer.InstanceType == than.offer.InstanceType {
		return p.inZone[s.offer.Zone] < p.inZone[than.offer.Zone]
	}
	return worth != nil && worth(s) < worth(than)
}
