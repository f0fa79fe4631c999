package scheduling

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// whyTopology is why no node takes a pod that any new one could run if it were not for others.
const whyTopology = "its affinity to other pods, theirs to it, or its spread allows it on no new node of the pool"

func (p *packer) result() Result {
	r := Result{Known: true, Unhelped: slices.Clone(p.stuck)}
	whole := p.shapes[0].free
	for _, g := range p.groups {
		if g.role != pending {
			continue
		}
		r.Room += g.room
		if g.new > 0 {
			for _, m := range g.members {
				r.New = append(r.New, m.name)
			}
		}
		if g.hasShape() {
			helped := len(g.members) - g.left
			r.Waiting += g.waits
			r.Helped += helped
			r.HelpedRoom += g.room
			if g.refusal > 0 {
				r.Filtered += helped
			}
			if g.refused && g.new > 0 {
				r.NoCapacity += g.new
				helped -= g.new
			}
			if !p.priced {
				r.add(g, helped, whole)
			}
		}
		why := whyTopology
		if !g.hasShape() {
			why = g.obstacle.why
		}
		for _, m := range g.members[len(g.members)-g.left:] {
			r.Unhelped = append(r.Unhelped, fleet.Unhelped{Pod: m.name, Reason: why})
		}
	}
	if p.priced {
		p.measure(&r)
	}
	slices.SortFunc(r.Unhelped, byPod)
	p.tellNodes(&r)
	return r
}

// add adds pods of a group as shares of a node.
func (r *Result) add(g *group, n int, whole vector) {
	r.CPU += equivalents(n, g.request[cpu], whole[cpu])
	r.Memory += equivalents(n, g.request[memory], whole[memory])
	r.Slots += equivalents(n, 1, whole[slots])
}

// measure adds each pod as a share of the node that it gets. Where costs decide, nodes differ much in size, and one large node
// would count as many of the cheapest type: then as many would be launched.
func (p *packer) measure(r *Result) {
	for _, at := range p.places {
		whole := at.whole
		if whole == nil {
			whole = p.shapes[at.shape].free
		}
		for _, t := range at.takes {
			if t.group.role == pending && t.group.hasShape() && (at.kind != added || !t.group.refused) {
				r.add(t.group, t.n, whole)
			}
		}
	}
}

// equivalents tells how many whole nodes a number of requests is; a node that has none of it left is worth nothing.
func equivalents(n int, request, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(n) * float64(request) / float64(whole)
}

func (p *packer) tellNodes(r *Result) {
	used := map[*group]int{} // names
	for _, at := range p.places {
		var names []string
		for _, t := range at.takes {
			for _, m := range t.group.members[used[t.group] : used[t.group]+t.n] {
				names = append(names, m.name)
			}
			used[t.group] += t.n
			if at.kind == added && t.group.refused {
				r.Beyond = append(r.Beyond, names[len(names)-t.n:]...)
			}
		}
		if at.kind != added {
			continue
		}
		r.Nodes++
		r.Added = append(r.Added, names)
		if !slices.ContainsFunc(at.takes, func(t taken) bool { return !t.group.refused }) {
			r.NoCapacityNodes++
		}
		if kinds := p.kindsOf(at); kinds != nil {
			addShape(&r.Shapes, kinds)
		}
	}
	slices.SortStableFunc(r.Shapes, func(a, b fleet.Shape) int { return slices.CompareFunc(a.Kinds, b.Kinds, compareKinds) })
}

// addShape counts one more node of some kinds.
func addShape(shapes *[]fleet.Shape, kinds []fleet.Kind) {
	for i, s := range *shapes {
		if slices.Equal(s.Kinds, kinds) {
			(*shapes)[i].Nodes++
			return
		}
	}
	*shapes = append(*shapes, fleet.Shape{Kinds: kinds, Nodes: 1})
}

func compareKinds(a, b fleet.Kind) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceType, b.InstanceType))
}

// kindsOf returns what a new node can be for its pods to run on it, nil if every offer will do.
func (p *packer) kindsOf(at *place) (kinds []fleet.Kind) {
	all := true
	for i, s := range p.shapes {
		if !at.allowed[i] || !s.holds(at.takes) {
			all = false
			continue
		}
		kind := fleet.Kind{Zone: s.offer.Zone, InstanceType: s.offer.InstanceType}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if all {
		return nil
	}
	slices.SortFunc(kinds, compareKinds)
	return kinds
}

// holds tells whether an empty node of the shape has room for all of these pods together.
func (s *shape) holds(takes []taken) bool {
	free := slices.Clone(s.free)
	for _, t := range takes {
		if free.times(t.group.request) < t.n {
			return false
		}
		free.take(t.group.request, t.n)
	}
	return true
}
