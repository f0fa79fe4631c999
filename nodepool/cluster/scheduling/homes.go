package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
)

// Homes finds out whether the pods of nodes that are removed could run on the other nodes that exist. Nodes on
// their way do not count: they may never come. Pods of nodes that are being emptied already, are cordoned or not
// Ready, and pending pods keep the room that there is for them.
type Homes struct {
	cluster  *cluster.Cluster
	world    Input
	shared   *world            // what questions have in common; nil: none has been asked
	unplaced int               // of the pods that keep their room, those that have none; below 0: it is not known yet
	answers  map[string]string // by the nodes that were asked about
}

var _ plan.Homes = (*Homes)(nil)

// NewHomes returns the homes that a cluster has, and those that it has with new nodes as an Input says. The pods of
// the Input keep the room that there is for them.
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
			return "its pod " + s.Pod.Namespace + "/" + s.Pod.Name + " could run nowhere, as " + s.Stuck
		}
	}
	if why := endingTogether(pods); why != "" {
		return why
	}
	if h.unplaced < 0 {
		h.unplaced = h.countUnplaced()
	}
	return h.pack(pods, leaving, added).verdict(mayWait, h.unplaced)
}

// endingTogether returns why too many pods of a PodDisruptionBudget would end with their nodes, "" if they would not. They are
// not evicted, so the eviction API does not see to it.
func endingTogether(pods []subject) string {
	ending := map[string]int{}
	for _, s := range pods {
		if s.Budget == nil || s.Bound == nil || !s.Bound.EndsWithNode() {
			continue
		}
		key := s.Pod.Namespace + "/" + s.Budget.Name
		if ending[key]++; ending[key] > mayBeAway(s.Budget) {
			return fmt.Sprintf("its pod %s would end with it, and PodDisruptionBudget %s lets %d be away", s.Pod.Namespace+"/"+s.Pod.Name, s.Budget.Name, mayBeAway(s.Budget))
		}
	}
	return ""
}

// countUnplaced counts the pods that have no place even if no node is removed.
func (h *Homes) countUnplaced() (n int) {
	if len(h.world.Pods)+len(h.world.Displaced) == 0 {
		return 0
	}
	for _, g := range h.pack(nil, nil, nil).groups {
		n += g.left
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
		h.shared = newWorld(&in)
	}
	p := h.shared.packer(in, pods, leaving)
	p.full = true
	p.hardestFirst()
	p.placeOnTheWay(added)
	p.rounds(p.groups)
	p.vanish()
	p.rounds(p.groups)
	return p
}

// hardestFirst orders groups by how many of the existing nodes could run them, as new ones are ordered by their
// shapes. Many are as good as all.
func (p *packer) hardestFirst() {
	const many = 64
	for _, g := range p.groups {
		for _, at := range p.places {
			if g.shapes >= many {
				break
			}
			if at.free.times(g.request) > 0 && g.runsOn(at.node) == nil {
				g.shapes++
			}
		}
	}
	slices.SortStableFunc(p.groups, byDifficulty)
}
