package binpack

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
)

// A leaving node is one that is being emptied and will be deleted, whoever does so, or one whose removal is asked about.
//
// It takes no pods. Its pods leave one after the other, and each is placed as kube-scheduler would place it then: the topology
// domains of the node still exist, with ever fewer pods in them, until the Node is deleted. A pod that has a place by these rules
// has one at once. Others have one only when the Node is deleted (a spread over host names counts an empty node as the emptiest
// domain, unless it has nodeTaintsPolicy: Honor): these wait. A third kind has no place even then.
//
// A pod that waits is no demand for nodes, and its place is not given to others. Whether pods may wait depends on why a node is
// removed, see [plan.Homes]. A pod that leaves while as many wait as its PodDisruptionBudget lets be away would never be evicted:
// the drain would not end.

// leavingNode returns a Node as it is while it is being emptied: with the taints that a removal puts there.
func leavingNode(n *corev1.Node) *corev1.Node {
	taints := append(slices.Clone(n.Spec.Taints),
		corev1.Taint{Key: clusterstate.Removing, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	return &corev1.Node{ObjectMeta: n.ObjectMeta, Spec: corev1.NodeSpec{Taints: taints}}
}

// leave has the next pod of a group leave its node, and reports whether there was one.
func (p *packer) leave(g *group) bool {
	if g.gone == len(g.members) || g.role == pending {
		return false
	}
	m := g.members[g.gone]
	g.gone++
	p.moved[m.bound] = true
	if at := p.byName[m.from]; at != nil && !at.gone && g.topology != nil {
		g.topology.remove(at)
		at.lost = append(at.lost, taken{g, 1})
	}
	return true
}

// leaveByBudget is leave, and notes if so many pods of the budget are without a place that the next one cannot be evicted.
func (p *packer) leaveByBudget(g *group) bool {
	if b := g.budget; b != nil && g.role == asked && g.gone < len(g.members) {
		if p.away[b.Name] >= b.Allowed && p.deadlock == nil {
			p.deadlock = g
		}
		p.away[b.Name]++
	}
	return p.leave(g)
}

// vanish deletes the nodes that leave, with what is left on them.
func (p *packer) vanish() {
	for _, g := range p.groups {
		g.late = g.left
		for p.leave(g) {
		}
	}
	for _, at := range p.nodes {
		if !at.leaving {
			continue
		}
		at.gone = true
		for _, pod := range slices.Concat(at.source.Pods, at.source.Nominated) {
			if !p.moved[pod] {
				p.topologies.uncount(pod, at)
			}
		}
	}
	p.vanished = true
}

// waitsFor returns, for people, why a pod has a place only when nodes are deleted.
func (p *packer) waitsFor(g *group) string {
	if g.topology != nil {
		for _, s := range g.topology.spreads {
			if s.rule.NodeTaintsPolicy == nil || *s.rule.NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor {
				return fmt.Sprintf("its topologySpreadConstraint over %s counts that node until then, unless it sets nodeTaintsPolicy: Honor", s.rule.TopologyKey)
			}
		}
	}
	return "pods that stay on that node keep it away until then"
}

// verdict returns why the pods that were asked about have no place, "" if all have one. Pods that wait for places keep theirs but
// for so many.
func (p *packer) verdict(mayWait bool, unplaced int) string {
	left := 0
	var robbed *group
	for _, g := range p.groups {
		switch name := g.unplaced(); {
		case g.role != asked:
			if left += g.left; g.left > 0 && robbed == nil {
				robbed = g
			}
		case g.left > 0:
			return "no other node could run its pod " + name
		case g.late > 0 && !mayWait:
			return fmt.Sprintf("another node could run its pod %s only after this one is deleted: %s", g.members[len(g.members)-g.late].name, p.waitsFor(g))
		case g.late > 0 && g.budget != nil && g.late > g.budget.Allowed && p.deadlock == nil:
			p.deadlock = g
		}
	}
	switch {
	case p.deadlock != nil:
		g := p.deadlock
		return fmt.Sprintf("its pods such as %s would wait until the node is deleted, and PodDisruptionBudget %s lets %d be away, so that the drain would not end: %s",
			g.members[0].name, g.budget.Name, g.budget.Allowed, p.waitsFor(g))
	case left <= unplaced:
		return ""
	case robbed.role == displaced:
		return "no other node has room for pod " + robbed.unplaced() + ", whose node is being emptied"
	}
	return "no other node has room for pod " + robbed.unplaced() + ", which waits for one"
}

// unplaced returns the first pod of a group that has no place, "" if all have one.
func (g *group) unplaced() string {
	if g.left == 0 {
		return ""
	}
	return g.members[len(g.members)-g.left].name
}

var _ plan.Homes = (*Homes)(nil)
