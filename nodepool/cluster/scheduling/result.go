package scheduling

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Result is the need of pending pods.
type Result struct {
	// Known is false if there are pods, but no offer of known size. Then the other fields mean
	// nothing.
	Known  bool
	Nodes  int // new ones, in addition to those that are being launched
	Helped int // pods that a node of the pool could run, including those with room elsewhere
	// Room is the number of pods for which an existing node has room, as far as is known. They need no
	// new node and are reported: the scheduler refuses those that wait for more than some minutes for
	// a reason that is unknown here.
	Room       int
	HelpedRoom int // those of them that are Helped
	// NoCapacity is the number of helped pods that only refused offers could run, apart from existing
	// nodes and those that are being launched. NoCapacityNodes is the number of Nodes that are only
	// for such pods. They are not part of CPU, Memory and Slots.
	NoCapacity, NoCapacityNodes int
	// Waiting is the number of helped pods that wait only until nodes which are being drained are
	// deleted.
	Waiting int
	// New are the pods, by namespace/name, of each group of which some get a new node.
	New []string
	// Beyond are pods, by namespace/name, that only refused offers could run, and Added those that go
	// to each of Nodes. A pool that cannot launch these nodes leaves the pods to another pool.
	Beyond []string
	Added  [][]string
	// Filtered is the number of helped pods that existing nodes refuse because of their predicted load.
	Filtered int
	// Unhelped are pods that neither an existing node nor a new one could run, and those that are
	// stuck with their claims.
	Unhelped []fleet.Unhelped
	// Shapes are the new nodes that cannot be of every offer, because their pods could not all run on
	// it.
	Shapes []fleet.Shape
	// Replacing are the shapes, as in Shapes, of the nodes that pods of replaced nodes will need if
	// they fit nowhere else. They are not part of Nodes.
	Replacing []fleet.Shape
	// CPU, Memory and Slots are the requests of the helped pods in node equivalents: shares of what
	// one node of the pool (the first offer, or with Costs the one that they get) can allocate apart
	// from its DaemonSets. They are the external demand of forecasts.
	CPU, Memory, Slots float64
}

// whyTopology is the reason for a pod that any new node could run if it were not for other pods.
const whyTopology = "its affinity to other pods, theirs to it, or its spread allows it on no new node of the pool"

func resultOf(p *packer) Result {
	r := Result{Known: true}
	for _, b := range p.batches {
		if b.role == pending {
			r.addBatch(b)
		}
	}
	r.measure(p)
	r.addNodes(p)
	for _, at := range p.ahead {
		addShape(&r.Replacing, kindsOf(at, p.nodes.catalog))
	}
	sortShapes(r.Shapes)
	sortShapes(r.Replacing)
	return r
}

// addBatch counts pending pods by their place.
func (r *Result) addBatch(b *batch) {
	r.Room += b.room
	if b.new > 0 {
		for _, m := range b.members {
			r.New = append(r.New, m.name)
		}
	}
	why := whyTopology
	if b.hasShape() {
		helped := len(b.members) - b.left
		r.Waiting += b.waits
		r.Helped += helped
		r.HelpedRoom += b.room
		if b.refusal > 0 {
			r.Filtered += helped
		}
		if b.refused {
			r.NoCapacity += b.new
		}
	} else {
		why = b.obstacle.why
	}
	for _, m := range b.members[len(b.members)-b.left:] {
		r.Unhelped = append(r.Unhelped, fleet.Unhelped{Pod: m.name, Reason: why})
	}
}

// hold counts pods that wait for capacity for others of their gang as pods without capacity.
func (r *Result) hold(pods []string) {
	r.Helped += len(pods)
	r.NoCapacity += len(pods)
	r.Beyond = append(r.Beyond, slices.Sorted(slices.Values(pods))...)
}

// measure adds the helped pods as shares of a node: of the first offer, or of the node that each
// gets. If costs decide, nodes differ much in size, and one large node would otherwise count as
// many of the cheapest type, which would then be launched.
func (r *Result) measure(p *packer) {
	if !p.nodes.catalog.priced {
		r.measureByFirstOffer(p)
		return
	}
	shapes := p.nodes.catalog.shapes
	for _, at := range p.nodes.open {
		whole := at.whole
		if whole == nil {
			whole = shapes[at.shape].free
		}
		for _, t := range at.takes {
			b := p.ofGroup[t.group.index]
			if b.role == pending && b.hasShape() && (at.kind != added || !b.refused) {
				r.addDemand(b.request, t.n, whole)
			}
		}
	}
}

// measureByFirstOffer adds the helped pods as shares of a node of the first offer.
func (r *Result) measureByFirstOffer(p *packer) {
	for _, b := range p.batches {
		if b.role == pending && b.hasShape() {
			helped := len(b.members) - b.left
			if b.refused {
				helped -= b.new
			}
			r.addDemand(b.request, helped, p.nodes.catalog.shapes[0].free)
		}
	}
}

// addDemand adds n pods with a request as shares of a node.
func (r *Result) addDemand(request vector, n int, whole vector) {
	r.CPU += equivalents(n, request[cpu], whole[cpu])
	r.Memory += equivalents(n, request[memory], whole[memory])
	r.Slots += equivalents(n, 1, whole[slots])
}

// equivalents returns n requests as a number of whole nodes, 0 for a node without any room.
func equivalents(n int, request, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(n) * float64(request) / float64(whole)
}

// addNodes adds the new nodes, with the names of their pods.
func (r *Result) addNodes(p *packer) {
	used := make([]int, len(p.ofGroup)) // number of used names of each group
	for _, at := range p.nodes.open {
		var names []string
		capacity := false
		for _, t := range at.takes {
			i := t.group.index
			for _, m := range t.group.members[used[i] : used[i]+t.n] {
				names = append(names, m.name)
			}
			used[i] += t.n
			if at.kind == added && p.ofGroup[i].refused {
				r.Beyond = append(r.Beyond, names[len(names)-t.n:]...)
			}
			capacity = capacity || !p.ofGroup[i].refused
		}
		if at.kind != added {
			continue
		}
		r.Nodes++
		r.Added = append(r.Added, names)
		if !capacity {
			r.NoCapacityNodes++
		}
		addShape(&r.Shapes, kindsOf(at, p.nodes.catalog))
	}
}

// addShape counts one more node of some kinds, unless every offer is suitable.
func addShape(shapes *[]fleet.Shape, kinds []fleet.Kind) {
	if kinds == nil {
		return
	}
	for i, s := range *shapes {
		if slices.Equal(s.Kinds, kinds) {
			(*shapes)[i].Nodes++
			return
		}
	}
	*shapes = append(*shapes, fleet.Shape{Kinds: kinds, Nodes: 1})
}

func sortShapes(shapes []fleet.Shape) {
	slices.SortStableFunc(shapes, func(a, b fleet.Shape) int { return slices.CompareFunc(a.Kinds, b.Kinds, compareKinds) })
}

func compareKinds(a, b fleet.Kind) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceType, b.InstanceType))
}

// kindsOf returns the kinds that a new node can have to run its pods, nil if every offer is
// suitable.
func kindsOf(at *place, c catalog) (kinds []fleet.Kind) {
	all := true
	for i, s := range c.shapes {
		if !at.allowed[i] || !holds(s, at.takes) {
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

// holds reports whether an empty node of the shape has room for all of these pods together.
func holds(s *shape, takes []taken) bool {
	free := slices.Clone(s.free)
	for _, t := range takes {
		if free.times(t.group.request) < t.n {
			return false
		}
		free.take(t.group.request, t.n)
	}
	return true
}

func byPod(a, b fleet.Unhelped) int { return cmp.Compare(a.Pod, b.Pod) }
