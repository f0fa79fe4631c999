package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// place is a node that takes pods: one that is there, one on its way or a new one.
type place struct {
	kind    kind
	node    *corev1.Node
	free    vector
	whole   vector // of one that is there, after its DaemonSets
	ports   []corev1.ContainerPort
	domains []int32       // by topology key: which one it is in; -1 = none
	rank    refusal       // of one that is there: see [joins]
	shape   int           // of a new one
	daemons []*corev1.Pod // of a new one: the pods of DaemonSets that it will run
	allowed []bool        // of a new one, by shape: whether that could run its pods as well
	takes   []taken

	source   *cluster.Node // of one that exists, also if it joins and is on its way
	pods     []kindCount   // the same
	lost     []taken       // pods that have left
	leaving  bool          // it is being emptied
	gone     bool          // and has been deleted
	attached []cluster.Attachment
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
	stuckGangs []string
	stuck      []fleet.Unhelped // pods in no group, as no node could run them now
	topologies *topologies
	nodes      []*place // all that there are, usable or not: their pods matter to others
	places     []*place // that take pods, in the order in which they are tried
	inZone     map[string]int
	drivers    map[string]int // the dimensions that count volumes
	full       bool           // no node is added
	priced     bool           // costs decide what is added

	byName   map[string]*place     // the nodes that leave
	moved    map[*cluster.Pod]bool // pods that have left their nodes
	away     map[string]int        // by PodDisruptionBudget: pods that have left and have no place yet
	deadlock *group                // the first that could not be evicted any more
	vanished bool                  // the nodes that leave are deleted
}

func newPacker(in Input) *packer { return newWorld(&in).packer(in, subjectsOf(&in), nil) }

// packer returns a packer of pods. Further nodes than those that are being emptied leave.
func (w *world) packer(in Input, pods []subject, further map[string]bool) *packer {
	p := &packer{
		dimensions: maps.Clone(w.dimensions), inZone: map[string]int{}, joins: w.joins,
		byName: map[string]*place{}, moved: map[*cluster.Pod]bool{}, away: map[string]int{},
	}
	p.groups = groupsOf(pods, p.joins, labelsOfRules(pods, w.labels, in.DaemonSets), sharedOf(pods, in.Nodes, further))
	for _, pod := range in.Pods {
		if pod.Stuck != "" {
			p.stuckGangs = append(p.stuckGangs, pod.Gang)
			p.stuck = append(p.stuck, fleet.Unhelped{Pod: pod.Pod.Namespace + "/" + pod.Pod.Name, Reason: pod.Stuck})
		}
	}
	requests := make([]corev1.ResourceList, len(p.groups))
	for i, g := range p.groups {
		requests[i] = g.requests()
		p.dimensions.add(requests[i])
	}
	p.findDrivers()
	for _, o := range in.Offers {
		if known(o) {
			s := newShape(o, &in, p.dimensions)
			s.index = len(p.shapes)
			p.dimensions.limit(s.free, func(driver string) (int, bool) {
				limit, known := in.AttachLimits[o.InstanceType][driver]
				return limit, known
			})
			p.shapes = append(p.shapes, s)
		}
	}
	p.price(in.Costs)
	whole := p.whole(in.Nodes)
	for i, g := range p.groups {
		p.judge(g, requests[i], whole)
	}
	p.topologies = newTopologies(p.groups, w, in.DaemonSets)
	slices.SortStableFunc(p.groups, byDifficulty)
	for i, g := range p.groups {
		g.order = i
	}
	p.placeNodes(&in, w, further)
	return p
}

// byDifficulty puts groups first that fewest shapes could run, then those that are picky, then large ones.
func byDifficulty(x, y *group) int {
	return cmp.Or(cmp.Compare(x.shapes, y.shapes), cmp.Compare(y.picky(), x.picky()), cmp.Compare(y.size, x.size))
}

// pack finds a place for every pod that has one: on nodes that exist or are on their way, then on these as they are
// when the nodes that leave are deleted, and at last on new ones. Pods that leave come after those that wait, and
// get no new node.
func (p *packer) pack(launched []fleet.Placement) {
	p.placeOnTheWay(launched)
	if !slices.ContainsFunc(p.nodes, func(at *place) bool { return at.leaving }) {
		p.rounds(p.groups)
		return
	}
	var waiting, leave []*group
	for _, g := range p.groups {
		if g.role == pending {
			waiting = append(waiting, g)
		} else {
			leave = append(leave, g)
		}
	}
	full := p.full
	p.full = true
	p.rounds(waiting)
	p.rounds(leave)
	p.vanish()
	p.rounds(waiting)
	p.rounds(leave)
	p.full = full
	p.rounds(waiting)
}

// rounds places groups as long as more pods find a place: a pod may want to be with one that has its place only
// now, or be kept away by one that has yet to leave.
func (p *packer) rounds(left []*group) {
	for progress := true; progress; {
		progress = false
		var again []*group
		for _, g := range left {
			before, there := g.left, g.gone
			p.place(g)
			progress = progress || g.left < before || g.gone > there
			if g.left > 0 {
				again = append(again, g)
			}
		}
		left = again
	}
}

// whole is what the sizes of pods are measured by: a new node, or the first of those that are there if none can be added.
func (p *packer) whole(nodes []cluster.Node) vector {
	if len(p.shapes) > 0 {
		return p.shapes[0].free
	}
	var of corev1.ResourceList
	if len(nodes) > 0 {
		of = nodes[0].Object.Status.Allocatable
	}
	whole := p.dimensions.vector(of)
	p.dimensions.limit(whole, func(string) (int, bool) { return 0, false })
	return whole
}

// judge finds the shapes that could run the pods of a group.
func (p *packer) judge(g *group, requests corev1.ResourceList, whole vector) {
	g.request = p.dimensions.vector(requests)
	if g.request[cpu] == 0 && g.request[memory] == 0 {
		g.request[plain] = 1
	}
	g.size = g.request.share(whole)
	g.takes = make([]bool, len(p.shapes))
	if g.role == pending && cluster.IsDaemonSets(g.pod) {
		g.obstacle = &obstacle{why: "it is of a DaemonSet and belongs to a node that is there"}
		return
	}
	g.cools, g.refused = true, true
	for i, s := range p.shapes {
		o := s.takes(g, p.dimensions)
		if o == nil && !p.attaches(g, &place{free: s.free}) {
			o = &obstacle{5, whyVolumes}
		}
		if o == nil {
			g.takes[i] = true
			g.shapes++
			g.cools, g.refused = g.cools && s.cooling, g.refused && s.refused
		} else if g.obstacle == nil || o.rank > g.obstacle.rank {
			g.obstacle = o
		}
	}
}

// placeNodes makes places of the nodes that are there and take pods. Those that join come last.
func (p *packer) placeNodes(in *Input, w *world, further map[string]bool) {
	all := make([]place, len(in.Nodes))
	known := len(p.dimensions) == len(w.dimensions)
	vectors := make(vector, 0, len(in.Nodes)*(len(w.dimensions)+firstOther))
	p.nodes, p.places = make([]*place, len(all)), make([]*place, 0, len(all))
	for i := range in.Nodes {
		n, s := &in.Nodes[i], &w.nodes[i]
		at := &all[i]
		*at = place{kind: there, node: n.Object, source: n, pods: s.pods}
		at.leaving = n.Leaving || in.Leaving[n.Object.Name] || further[n.Object.Name]
		if at.leaving {
			at.node = leavingNode(n.Object)
		}
		usable := s.takesPods && !at.leaving
		if usable {
			vectors = append(vectors, s.free...)
			at.free, at.whole = vectors[len(vectors)-len(s.free):], s.whole
			if !known {
				at.free, at.whole = p.dimensions.roomOf(n, in)
			}
			p.joining(at, n, in)
		}
		at.domains = p.topologies.domainsOf(at.node)
		p.nodes[i] = at
		p.topologies.count(at)
		if at.leaving {
			p.byName[n.Object.Name] = at
		}
		if !usable || at.free[slots] <= 0 {
			continue
		}
		at.ports, at.rank, at.attached = slices.Clip(s.ports), s.rank, n.Attached
		p.places = append(p.places, at)
	}
	slices.SortStableFunc(p.places, func(x, y *place) int { return cmp.Compare(x.kind, y.kind) })
}

// placeOnTheWay makes places of launched nodes. One that none of the offers is like is taken for the first of all.
func (p *packer) placeOnTheWay(launched []fleet.Placement) {
	if len(p.shapes) == 0 {
		return
	}
	for _, l := range launched {
		p.add(onTheWay, max(0, p.nearest(l)), l.Zone)
	}
}

// nearest returns the shape that a launched node is most like: the first of its type and zone, of its type, of its zone; -1 if
// there is none.
func (p *packer) nearest(launched fleet.Placement) int {
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
	if n == 0 || !p.attaches(g, at) {
		return 0
	}
	if len(g.ports) > 0 {
		if conflict(g.ports, at.ports) {
			return 0
		}
		n = 1
	}
	if at.kind == added && at.node == p.shapes[at.shape].node {
		// A node that cannot be launched now is not waited for by pods that others would do for.
		if s := p.shapes[at.shape]; !g.takes[at.shape] || s.cooling && !g.cools {
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
	for p.leave(g) { // that they leave one after the other makes no difference to each other
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
		left := p.leaveByBudget(g)
		g.topology.level()
		i := slices.IndexFunc(candidates, g.topology.allows)
		var at *place
		if i >= 0 {
			at = candidates[i]
		} else if at = p.open(g); at == nil && left {
			continue // it waits, and the next one leaves
		} else if at == nil {
			return
		} else {
			i = len(candidates)
			candidates = append(candidates, at)
		}
		p.put(g, at, 1)
		if g.budget != nil && g.role == asked {
			p.away[g.budget.Name]--
		}
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
	p.attach(g, at)
	at.ports = append(at.ports, g.ports...)
	g.left -= n
	switch {
	case at.kind == there && p.vanished:
		g.waits += n
	case at.kind == there:
		g.room += n
	case at.kind == added:
		g.new += n
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
