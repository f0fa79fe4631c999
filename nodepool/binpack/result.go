package binpack

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/nodepool/plan"
)

// whyTopology is why no node takes a pod that any new one could run if it were not for others.
const whyTopology = "its affinity to other pods, theirs to it, or its spread allows it on no new node of the pool"

func (p *packer) result() Result {
	r := Result{Known: true, Unhelped: slices.Clone(p.stuck)}
	whole := p.shapes[0].free
	for _, g := range p.groups {
		r.Room += g.room
		if g.hasShape() {
			helped := len(g.names) - g.left
			r.Helped += helped
			if g.refusal > 0 {
				r.Filtered += helped
			}
			r.CPU += equivalents(helped, g.request[cpu], whole[cpu])
			r.Memory += equivalents(helped, g.request[memory], whole[memory])
			r.Slots += equivalents(helped, 1, whole[slots])
		}
		why := whyTopology
		if !g.hasShape() {
			why = g.obstacle.why
		}
		for _, name := range g.names[len(g.names)-g.left:] {
			r.Unhelped = append(r.Unhelped, plan.Unhelped{Pod: name, Reason: why})
		}
	}
	slices.SortFunc(r.Unhelped, func(a, b plan.Unhelped) int { return cmp.Compare(a.Pod, b.Pod) })
	p.tellNodes(&r)
	return r
}

// equivalents tells how many whole nodes a number of requests is; a node that has none of it left is worth nothing.
func equivalents(n int, request, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(n) * float64(request) / float64(whole)
}

func (p *packer) tellNodes(r *Result) {
	shapes := map[Shape]int{}
	for _, at := range p.places {
		if at.kind != added {
			continue
		}
		r.Nodes++
		s := p.pinned(at)
		if s.Zone != "" {
			if r.Zones == nil {
				r.Zones = map[string]int{}
			}
			r.Zones[s.Zone]++
		}
		if s != (Shape{}) {
			shapes[s]++
		}
	}
	for s, n := range shapes {
		s.Nodes = n
		r.Shapes = append(r.Shapes, s)
	}
	slices.SortFunc(r.Shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceType, b.InstanceType))
	})
}

// pinned tells in which zone and of which type a new node must be for its pods to run on it.
func (p *packer) pinned(at *place) Shape {
	is := p.shapes[at.shape].offer
	all, inZone, ofType := true, true, true // every offer will do, every one in its zone, every one of its type
	oneZone, elsewhere := true, false       // the pool has no other zone, one in another zone will do
	for i, s := range p.shapes {
		sameZone, sameType := s.offer.Zone == is.Zone, s.offer.InstanceType == is.InstanceType
		all = all && at.allowed[i]
		inZone = inZone && (at.allowed[i] || !sameZone)
		ofType = ofType && (at.allowed[i] || !sameType)
		oneZone = oneZone && sameZone
		elsewhere = elsewhere || at.allowed[i] && !sameZone
	}
	if all {
		return Shape{}
	}
	out := Shape{Zone: is.Zone, InstanceType: is.InstanceType}
	switch {
	case oneZone || elsewhere && ofType:
		out.Zone = ""
	case inZone:
		out.InstanceType = ""
	}
	return out
}
