package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
)

// Simulator simulates whether the pods of removed nodes could run on the other existing nodes. Nodes
// that are being launched do not count: they may never join. Pending pods, and pods of nodes that
// are being drained, cordoned or not Ready, keep the room that exists for them.
type Simulator struct {
	cluster  *cluster.Cluster
	world    Input
	shared   *world            // shared by all simulations; nil before the first
	unplaced int               // number of pods that keep their room but have none; negative: not counted yet
	answers  map[string]string // by the removed nodes
}

var _ plan.Simulator = (*Simulator)(nil)

// NewSimulator returns a simulation of a cluster, and of new nodes as an Input describes them. The pods
// of the Input keep the room that exists for them.
func NewSimulator(c *cluster.Cluster, world Input) *Simulator {
	world.Nodes, world.OnTheWay = c.Nodes, nil
	world.Pods = slices.DeleteFunc(slices.Clone(world.Pods), func(w cluster.Pending) bool { return w.Stuck != "" })
	world.Displaced = slices.DeleteFunc(DisplacedOf(c, func(n *cluster.Node) bool {
		return n.Leaving || n.Object.Spec.Unschedulable || !n.Ready || world.Leaving[n.Object.Name]
	}), func(d Displaced) bool { return d.Stuck != "" })
	return &Simulator{cluster: c, world: world, unplaced: -1, answers: map[string]string{}}
}

// Without implements [plan.Simulator]. It costs about as much as a packing.
func (h *Simulator) Without(nodes []string, mayWait bool, added ...fleet.Placement) string {
	parts := append(slices.Clone(nodes), fmt.Sprint(" ", mayWait))
	for _, p := range added {
		parts = append(parts, " "+p.Zone+"/"+p.InstanceType)
	}
	key := strings.Join(parts, "/")
	why, ok := h.answers[key]
	if !ok {
		why = h.without(nodes, mayWait, added)
		h.answers[key] = why
	}
	return why
}

func (h *Simulator) without(nodes []string, mayWait bool, added []fleet.Placement) string {
	leaving := map[string]bool{}
	for _, name := range nodes {
		leaving[name] = true
	}
	pods := h.leaving(leaving)
	if len(pods) == 0 && len(h.world.Pods)+len(h.world.Displaced) == 0 {
		return ""
	}
	for _, s := range pods {
		if s.Stuck != "" {
			return "its pod " + nameOf(s.Pending) + " could run nowhere: " + s.Stuck
		}
	}
	if why := endingTogether(pods); why != "" {
		return why
	}
	if h.unplaced < 0 {
		h.unplaced = h.countUnplaced()
	}
	return verdictOf(h.pack(pods, leaving, added), mayWait, h.unplaced)
}

// endingTogether returns why too many pods of a PodDisruptionBudget would end with their nodes, ""
// if they would not. They are not evicted, so the eviction API does not enforce the budget.
func endingTogether(pods []subject) string {
	ending := map[string]int{}
	for _, s := range pods {
		if s.Budget == nil || s.Bound == nil || !s.Bound.EndsWithNode() {
			continue
		}
		key := s.Pod.Namespace + "/" + s.Budget.Name
		if ending[key]++; ending[key] > mayBeAway(s.Budget) {
			return fmt.Sprintf("its pod %s would end with it, and PodDisruptionBudget %s allows %d to be unavailable",
				nameOf(s.Pending), s.Budget.Name, mayBeAway(s.Budget))
		}
	}
	return ""
}

// countUnplaced counts the pods that have no place even if no node is removed.
func (h *Simulator) countUnplaced() (n int) {
	if len(h.world.Pods)+len(h.world.Displaced) == 0 {
		return 0
	}
	for _, b := range h.pack(nil, nil, nil).batches {
		n += b.left
	}
	return n
}

// leaving returns the pods that would leave nodes.
func (h *Simulator) leaving(nodes map[string]bool) []subject {
	var out []subject
	for i := range h.cluster.Nodes {
		n := &h.cluster.Nodes[i]
		if !nodes[n.Object.Name] {
			continue
		}
		for _, p := range h.cluster.Replacements(n) {
			out = append(out, subject{p, examined, n.Object.Name})
		}
	}
	return out
}

// pack places the pods of leaving nodes, and those that keep their room.
func (h *Simulator) pack(pods []subject, leaving map[string]bool, added []fleet.Placement) *packer {
	in := h.world
	in.NewlyReady = nil
	if len(added) == 0 {
		in.Offers = nil
	}
	for _, s := range subjectsOf(&in) {
		if !leaving[s.from] {
			pods = append(pods, s)
		}
	}
	if h.shared == nil {
		h.shared = worldOf(&in)
	}
	p := newPacker(&in, h.shared, pods, leaving)
	p.full = true
	countPlaces(p)
	hardestFirst(p.batches)
	p.nodes.addLaunched(added)
	p.rounds(p.batches)
	p.vanish()
	p.rounds(p.batches)
	return p
}

// countPlaces orders batches by the number of existing nodes that could run them, as shapes do
// where new nodes are added. It stops counting at many.
func countPlaces(p *packer) {
	const many = 64
	for _, b := range p.batches {
		for _, at := range p.nodes.open {
			if b.shapes >= many {
				break
			}
			if at.free.times(b.request) > 0 && obstacleOn(at.node, b.group) == nil {
				b.shapes++
			}
		}
	}
}

// verdictOf returns why the pods of the examined nodes have no place, "" if all have one. unplaced
// is the number of other pods that have no place even if no node is removed.
func verdictOf(p *packer, mayWait bool, unplaced int) string {
	left := 0
	var pushedOut *batch
	for _, b := range p.batches {
		if b.role == examined {
			if why := whyUnplaced(b, mayWait); why != "" {
				return why
			}
		} else if left += b.left; b.left > 0 && pushedOut == nil {
			pushedOut = b
		}
	}
	if why := whyDeadlock(p); why != "" {
		return why
	}
	switch {
	case left <= unplaced:
		return ""
	case pushedOut.role == displaced || pushedOut.role == replaced:
		return "no other node has room for pod " + pushedOut.unplaced() + ", whose node is being drained"
	}
	return "no other node has room for pod " + pushedOut.unplaced() + ", which waits for one"
}

// whyDeadlock returns why a drain of the examined nodes would not end, "" if it would.
func whyDeadlock(p *packer) string {
	b := p.departures.deadlock
	if b == nil {
		at := slices.IndexFunc(p.batches, func(b *batch) bool {
			return b.role == examined && b.budget != nil && b.late > mayBeAway(b.budget)
		})
		if at < 0 {
			return ""
		}
		b = p.batches[at]
	}
	return fmt.Sprintf("its pods such as %s would wait until the node is deleted, and PodDisruptionBudget %s allows "+
		"%d disruptions, so the drain would not end: %s",
		b.members[0].name, b.budget.Name, mayBeAway(b.budget), whyLate(b))
}

// whyUnplaced returns why pods of an examined node have no place, or have one too late, "" if they
// have one.
func whyUnplaced(b *batch, mayWait bool) string {
	switch {
	case b.left > 0:
		return "no other node could run its pod " + b.unplaced()
	case b.late > 0 && !mayWait:
		late := b.members[len(b.members)-b.late].name
		return "another node could run its pod " + late + " only after this one is deleted: " + whyLate(b)
	}
	return ""
}

// whyLate describes why pods have a place only after nodes are deleted.
func whyLate(b *batch) string {
	if b.rules != nil {
		for _, s := range b.rules.spreads {
			if !honors(s.rule.NodeTaintsPolicy, false) {
				return "its topologySpreadConstraint over " + s.rule.TopologyKey +
					" counts that node until then, unless it sets nodeTaintsPolicy: Honor"
			}
		}
	}
	return "pods that stay on that node keep it away until then"
}
