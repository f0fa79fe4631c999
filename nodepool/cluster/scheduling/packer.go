package scheduling

import (
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/cluster"
)

// packer is the state of one packing.
type packer struct {
	nodes      nodeSet
	batches    []*batch // hardest first
	ofGroup    []*batch // by the index of the group
	drivers    drivers
	departures departures
	ahead      []*place // new nodes that pods need once they have left their own
	full       bool     // no node is added
	vanished   bool     // the leaving nodes have been deleted
}

// newPacker returns a packer of pods. The nodes in further leave, in addition to those that are
// being drained.
func newPacker(in *Input, w *world, pods []subject, further map[string]bool) *packer {
	d := maps.Clone(w.dimensions)
	groups := groupsOf(pods, w.joins, labelsOfRules(pods, w.labels, in.DaemonSets), sharedOf(pods, in.Nodes, further))
	measure(groups, d)
	rules, topology := readRules(groups, w, in.DaemonSets)
	p := &packer{
		nodes: nodeSet{
			dimensions: d, catalog: newCatalog(in, d), topology: topology,
			leaving: map[string]*place{}, inZone: map[string]int{},
		},
		drivers: driversOf(d),
	}
	whole := p.nodes.catalog.whole(in.Nodes, d)
	for i, g := range groups {
		p.batches = append(p.batches, &batch{
			group: g, rules: rules[i], options: p.nodes.catalog.optionsOf(g, d, p.drivers),
			size: g.request.share(whole), left: len(g.members),
		})
	}
	p.ofGroup = slices.Clone(p.batches)
	hardestFirst(p.batches)
	for i, b := range p.batches {
		b.order = i
	}
	p.nodes.addExisting(in, w, further)
	p.departures = departures{from: p.nodes.leaving, moved: map[*cluster.Pod]bool{}, away: map[string]int{}}
	return p
}

// rounds places batches until no more pods find a place: a pod may depend on one that got its place
// only now, or be excluded by one that has yet to leave.
func (p *packer) rounds(left []*batch) {
	for progress := true; progress; {
		progress = false
		var again []*batch
		for _, b := range left {
			before, gone := b.left, b.gone
			p.place(b)
			progress = progress || b.left < before || b.gone > gone
			if b.left > 0 {
				again = append(again, b)
			}
		}
		left = again
	}
}

// place finds places for as many pods of a batch as possible.
func (p *packer) place(b *batch) {
	if b.rules != nil && b.rules.mutual() {
		p.placeEach(b)
		return
	}
	for p.departures.next(b) { // leaving one after the other makes no difference to these
	}
	for _, at := range p.nodes.open {
		if b.left == 0 {
			return
		}
		p.put(b, at, p.fitting(b, at))
	}
	for b.left > 0 {
		at := p.open(b)
		if at == nil {
			return
		}
		p.put(b, at, p.fitting(b, at))
	}
}

// placeEach places pods one by one, because each changes where the next one may run.
func (p *packer) placeEach(b *batch) {
	b.rules.begin(&p.nodes)
	candidates := slices.DeleteFunc(slices.Clone(p.nodes.open), func(at *place) bool { return p.room(b, at) == 0 })
	for b.left > 0 {
		left := p.departures.nextByBudget(b)
		b.rules.level()
		i := slices.IndexFunc(candidates, b.rules.allows)
		var at *place
		if i >= 0 {
			at = candidates[i]
		} else if at = p.open(b); at == nil && left {
			continue // it waits, and the next one leaves
		} else if at == nil {
			return
		} else {
			i = len(candidates)
			candidates = append(candidates, at)
		}
		p.put(b, at, 1)
		p.departures.arrived(b)
		if p.room(b, at) == 0 {
			candidates = slices.Delete(candidates, i, i+1)
		}
	}
}

// fitting returns the number of pods of a batch that a place takes, if they matter to each other
// only on one node.
func (p *packer) fitting(b *batch, at *place) int {
	n := min(p.room(b, at), b.left)
	if n == 0 || b.rules == nil {
		return n
	}
	if !b.rules.allows(at) {
		return 0
	}
	if b.rules.alone {
		return 1
	}
	return n
}

// room returns the number of pods of a batch that a place takes, ignoring rules about other pods.
func (p *packer) room(b *batch, at *place) int {
	if at.kind == existing && b.refusal.covers(at.rank) {
		return 0
	}
	n := at.free.times(b.request)
	if n == 0 || !p.drivers.fit(b.shared, at.attached, at.free) {
		return 0
	}
	if len(b.ports) > 0 {
		if conflict(b.ports, at.ports) {
			return 0
		}
		n = 1
	}
	if !p.suits(b, at) {
		return 0
	}
	return n
}

// suits reports whether the node of a place could run the pods of a batch. Pods that other shapes
// suit do not wait for a new node that cannot be launched now.
func (p *packer) suits(b *batch, at *place) bool {
	if at.kind == added {
		if s := p.nodes.catalog.shapes[at.shape]; at.node == s.node {
			return b.takes[at.shape] && (b.cools || !s.cooling)
		}
	}
	return obstacleOn(at.node, b.group) == nil
}

// put puts n pods of a batch into a place.
func (p *packer) put(b *batch, at *place, n int) {
	if n == 0 {
		return
	}
	at.take(b.group, b.matched(), n)
	at.free.take(b.request, n)
	at.attached = p.drivers.attach(b.shared, at.attached, at.free)
	at.ports = append(at.ports, b.ports...)
	b.left -= n
	switch {
	case at.kind == existing && p.vanished:
		b.waits += n
	case at.kind == existing:
		b.room += n
	case at.kind == added:
		b.new += n
	}
	for i := range at.allowed {
		at.allowed[i] = at.allowed[i] && b.takes[i]
	}
	if b.rules != nil {
		b.rules.put(at, n)
		b.rules.restrict(at, p.nodes.catalog.shapes)
	}
}

// open adds a node for pods of a batch: of the first type that takes them and can be launched, or
// of the one that costs least for the pods that it would take, in the zone with the fewest
// additions. It returns nil if no node would help.
func (p *packer) open(b *batch) *place {
	best := -1
	var cost func(*shape) float64
	if p.nodes.catalog.priced {
		cost = worth(p.batches, b)
	}
	shapes := p.nodes.catalog.shapes
	for i, s := range shapes {
		if p.full || !b.takes[i] || best >= 0 && !p.better(s, shapes[best], cost) {
			continue
		}
		if b.rules == nil || b.rules.allowsNew(p.nodes.imagine(added, i, s.offer.Zone)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	at := p.nodes.add(added, best, shapes[best].offer.Zone)
	if b.rules != nil {
		b.rules.opened(at)
	}
	return at
}

// better compares a shape with an earlier one in the order of preference. cost is nil unless costs
// decide.
func (p *packer) better(s, than *shape, cost func(*shape) float64) bool {
	if s.cooling != than.cooling {
		return than.cooling
	}
	if s.offer.InstanceType == than.offer.InstanceType {
		return p.nodes.inZone[s.offer.Zone] < p.nodes.inZone[than.offer.Zone]
	}
	return cost != nil && cost(s) < cost(than)
}

// vanish deletes the leaving nodes, with the pods that are still on them.
func (p *packer) vanish() {
	for _, b := range p.batches {
		b.late = b.left
		for p.departures.next(b) {
		}
	}
	for _, at := range p.nodes.existing {
		if !at.leaving {
			continue
		}
		at.gone = true
		for _, pod := range slices.Concat(at.source.Pods, at.source.Nominated) {
			if !p.departures.moved[pod] {
				p.nodes.topology.uncount(at.domains, pod)
			}
		}
	}
	p.vanished = true
}
