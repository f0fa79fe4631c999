package binpack

import (
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
)

// Homes tells whether the pods of nodes that are removed could run on the other nodes that are there. Nodes on their way do not
// count: they may never come.
type Homes struct {
	cluster *clusterstate.Cluster
	added   Input // what new nodes are
	waiting []clusterstate.Pending
	room    int               // how many of those keep their room
	told    map[string]string // by the nodes that were asked about
}

// NewHomes returns the homes that a cluster has, and those that it has with new nodes as an Input says.
func NewHomes(c *clusterstate.Cluster, added Input) *Homes {
	return &Homes{cluster: c, added: added, told: map[string]string{}}
}

// Reserve has some of these pods, which wait for a node, keep the room that there is for them. Those that no node could run now
// have none to keep.
func (h *Homes) Reserve(some int, waiting []clusterstate.Pending) {
	h.waiting = slices.DeleteFunc(slices.Clone(waiting), func(w clusterstate.Pending) bool { return w.Stuck != "" })
	h.room = some
	clear(h.told)
}

// Without returns why the pods of some nodes, by name, could not all run on the others and on new ones, "" if they could: a
// sentence without a full stop about one of them. It costs about as much as a packing.
func (h *Homes) Without(nodes []string, added ...plan.Placement) string {
	parts := slices.Clone(nodes)
	for _, p := range added {
		parts = append(parts, " "+p.Zone+"/"+p.InstanceType)
	}
	key := strings.Join(parts, "/")
	why, ok := h.told[key]
	if !ok {
		why = h.without(nodes, added)
		h.told[key] = why
	}
	return why
}

func (h *Homes) without(nodes []string, added []plan.Placement) string {
	var in Input
	if len(added) > 0 {
		in = h.added
		in.Pods, in.Nodes, in.Joining = nil, nil, nil
	}
	for i := range h.cluster.Nodes {
		if n := &h.cluster.Nodes[i]; slices.Contains(nodes, n.Object.Name) {
			in.Pods = append(in.Pods, h.cluster.Replacements(n)...)
		}
	}
	in.Pods = append(in.Pods, h.waiting...)
	if len(in.Pods) == 0 {
		return ""
	}
	for _, n := range h.cluster.Nodes {
		if !slices.Contains(nodes, n.Object.Name) {
			in.Nodes = append(in.Nodes, n)
		}
	}
	p := newPacker(in)
	if len(p.stuck) > 0 {
		return "its pod " + p.stuck[0].Pod + " could run nowhere, as " + p.stuck[0].Reason
	}
	p.hardestFirst()
	p.full = true
	p.pack(added)
	left, name := 0, ""
	for _, g := range p.groups {
		if left += g.left; g.left > 0 && name == "" {
			name = g.names[len(g.names)-g.left]
		}
	}
	switch {
	case left <= len(h.waiting)-h.room:
		return ""
	case slices.ContainsFunc(h.waiting, func(w clusterstate.Pending) bool { return w.Pod.Namespace+"/"+w.Pod.Name == name }):
		return "no other node has room for pod " + name + ", which waits for one"
	}
	return "no other node could run its pod " + name
}

// hardestFirst orders groups by how many of the nodes that are there could run them, as new ones are ordered by their shapes. Many
// are as good as all.
func (p *packer) hardestFirst() {
	const many = 64
	for _, g := range p.groups {
		for _, at := range p.places {
			if g.shapes < many && at.free.times(g.request) > 0 && g.runsOn(at.node) == nil {
				g.shapes++
			}
		}
	}
	slices.SortStableFunc(p.groups, byDifficulty)
}
