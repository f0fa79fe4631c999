package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
)

// Homes finds out whether the pods of nodes that are removed could run on the other existing nodes.
// Nodes on their way do not count: they may never come. Pending pods, and pods of nodes that are
// being emptied already, are cordoned or not Ready, keep the room that there is for them.
type Homes struct {
	cluster  *cluster.Cluster
	world    Input
	shared   *world            // what all questions share; nil before the first
	unplaced int               // of the pods that keep their room, those that have none; below 0: not counted yet
	answers  map[string]string // by the nodes that were asked about
}

var _ plan.Homes = (*Homes)(nil)

// NewHomes returns the homes that a cluster has, and those that it has with new nodes as an Input
// describes them. The pods of the Input keep the room that there is for them.
func NewHomes(c *cluster.Cluster, world Input) *Homes {
	world.Nodes, world.OnTheWay = c.Nodes, nil
	world.Pods = slices.DeleteFunc(slices.Clone(world.Pods), func(w cluster.Pending) bool { return w.Stuck != "" })
	world.Displaced = slices.DeleteFunc(DisplacedOf(c, func(n *cluster.Node) bool {
		return n.Leaving || n.Object.Spec.Unschedulable || !n.Ready || world.Leaving[n.Object.Name]
	}), func(d Displaced) bool { return d.Stuck != "" })
	return &Homes{cluster: c, world: world, unplaced: -1, answers: map[string]string{}}
}

// Without implements [plan.Homes]. It costs about as much as a packing.
func (h *Homes) Without(nodes []string, mayWait bool, added ...fleet.Placement) string {
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

func (h *Homes) without(nodes []string, mayWait bool, added []fleet.Placement) string {
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
			return "its pod " + nameOf(s.Pending) + " could run nowhere, as " + s.Stuck
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
			return fmt.Sprintf("its pod %s would end with it, and PodDisruptionBudget %s lets %d be away",
				nameOf(s.Pending), s.Budget.Name, mayBeAway(s.Budget))
		}
	}
	return ""
}

// countUnplaced counts the pods that have no place even if no node is removed.
func (h *Homes) countUnplaced() (n int) {
	if len(h.world.Pods)+len(h.world.Displaced) == 0 {
		return 0
	}
	for _, b := range h.pack(nil, nil, nil).batches {
		n += b.left
	}
	return n
}

// leaving returns the pods that would leave nodes.
func (h *Homes) leaving(nodes map[string]bool) []subject {
	var out []subject
	for i := range h.cluster.Nodes {
		n := &h.cluster.Nodes[i]
		if !nodes[n.Object.Name] {
			continue
		}
		for _, p := range h.cluster.Replacements(n) {
			out = append(out, subject{p, asked, n.Object.Name})
		}
	}
	return out
}

// pack looks for places for the pods of nodes that leave, and for those that keep theirs.
func (h *Homes) pack(pods []subject, leaving map[string]bool, added []fleet.Placement) *packer {
	in := h.world
	in.Joining = nil
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

// countPlaces has batches be ordered by how many of the existing nodes could run them, as they are by shapes where new
// ones are added. Many are as good as all.
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

// verdictOf returns why the pods of the examined nodes have no place, "" if all have one. unplaced is how many of the
// other pods have no place even if no node is removed.
func verdictOf(p *packer, mayWait bool, unplaced int) string {
	left := 0
	var robbed *batch
	deadlock := p.departures.deadlock
	for _, b := range p.batches {
		if b.role == asked {
			if why := whyHomeless(b, mayWait); why != "" {
				return why
			}
			if deadlock == nil && b.budget != nil && b.late > mayBeAway(b.budget) {
				deadlock = b
			}
			continue
		}
		if left += b.left; b.left > 0 && robbed == nil {
			robbed = b
		}
	}
	switch {
	case deadlock != nil:
		return fmt.Sprintf(
			"its pods such as %s would wait until the node is deleted, and PodDisruptionBudget %s allows "+
				"%d disruptions, so the drain would not end: %s",
			deadlock.members[0].name, deadlock.budget.Name, mayBeAway(deadlock.budget), whyLate(deadlock))
	case left <= unplaced:
		return ""
	case robbed.role == displaced || robbed.role == replaced:
		return "no other node has room for pod " + robbed.unplaced() + ", whose node is being emptied"
	}
	return "no other node has room for pod " + robbed.unplaced() + ", which waits for one"
}

// whyHomeless returns why pods of an examined node have no place, or have one too late; "" if they have one.
func whyHomeless(b *batch, mayWait bool) string {
	switch {
	case b.left > 0:
		return "no other node could run its pod " + b.unplaced()
	case b.late > 0 && !mayWait:
		late := b.members[len(b.members)-b.late].name
		return "another node could run its pod " + late + " only after this one is deleted: " + whyLate(b)
	}
	return ""
}

// whyLate returns, for people, why pods have a place only when nodes are deleted.
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
