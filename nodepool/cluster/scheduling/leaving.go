package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// A leaving node is being emptied, and its Node will be deleted: by this pool or another one, by an interruption or
// a repair, by Karpenter, cluster-autoscaler or a person. While the removal of a node is examined, it counts as
// leaving.
//
//   - It takes no pods.
//   - Its pods leave one after the other, and kube-scheduler places each replacement while the Node still exists: the
//     topology domains of the node count, with fewer pods in them each time.
//   - A replacement that has a place by these rules has it at once. Another one waits: it has a place only when the Node
//     is deleted. A spread over hosts, for example, counts an empty node as the emptiest host, unless it sets
//     nodeTaintsPolicy: Honor. A third kind has no place even then.
//   - A pod that waits is no demand for nodes. Whether pods may wait depends on why a node is removed: [plan.Homes].
//   - A pod cannot be evicted while as many pods wait as its PodDisruptionBudget allows to be disrupted. A removal that
//     would come to that point never ends, so it does not begin.
//   - Pods of all leaving nodes keep the room that they will need.

// leavingNode returns a Node as it is while it is being emptied: with the taints that a removal puts there.
func leavingNode(n *corev1.Node) *corev1.Node {
	taints := append(slices.Clone(n.Spec.Taints),
		corev1.Taint{Key: cluster.Removing, Effect: corev1.TaintEffectNoSchedule},
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

// leaveByBudget is leave. It records a deadlock if so many pods of the budget wait that the next one cannot be
// evicted.
func (p *packer) leaveByBudget(g *group) bool {
	if b := g.budget; b != nil && g.role == asked && g.gone < len(g.members) {
		if p.away[b.Name] >= mayBeAway(b) && p.deadlock == nil {
			p.deadlock = g
		}
		p.away[b.Name]++
	}
	return p.leave(g)
}

// mayBeAway is how many pods of a budget may wait at once. A budget that allows none now does so because of pods that are
// away for a moment, or it blocks the node anyway.
func mayBeAway(b *cluster.Budget) int { return max(1, b.Allowed) }

// vanish deletes the nodes that leave, with the pods that are still on them.
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
			if !honors(s.rule.NodeTaintsPolicy, false) {
				return "its topologySpreadConstraint over " + s.rule.TopologyKey +
					" counts that node until then, unless it sets nodeTaintsPolicy: Honor"
			}
		}
	}
	return "pods that stay on that node keep it away until then"
}

// verdict returns why the pods of the examined nodes have no place, "" if all have one. unplaced is how many of the other
// pods have no place even if no node is removed.
func (p *packer) verdict(mayWait bool, unplaced int) string {
	left := 0
	var robbed *group
	for _, g := range p.groups {
		if g.role == asked {
			if why := p.refusal(g, mayWait); why != "" {
				return why
			}
			continue
		}
		if left += g.left; g.left > 0 && robbed == nil {
			robbed = g
		}
	}
	switch {
	case p.deadlock != nil:
		g := p.deadlock
		return fmt.Sprintf(
			"its pods such as %s would wait until the node is deleted, and PodDisruptionBudget %s allows %d disruptions, "+
				"so the drain would not end: %s", g.members[0].name, g.budget.Name, mayBeAway(g.budget), p.waitsFor(g))
	case left <= unplaced:
		return ""
	case robbed.role == displaced:
		return "no other node has room for pod " + robbed.unplaced() + ", whose node is being emptied"
	}
	return "no other node has room for pod " + robbed.unplaced() + ", which waits for one"
}

// refusal returns why a group of an examined node has no place, "" if it has one. It notes a deadlock.
func (p *packer) refusal(g *group, mayWait bool) string {
	switch {
	case g.left > 0:
		return "no other node could run its pod " + g.unplaced()
	case g.late > 0 && !mayWait:
		late := g.members[len(g.members)-g.late].name
		return "another node could run its pod " + late + " only after this one is deleted: " + p.waitsFor(g)
	case g.budget != nil && g.late > mayBeAway(g.budget) && p.deadlock == nil:
		p.deadlock = g
	}
	return ""
}

// unplaced returns the first pod of a group that has no place, "" if all have one.
func (g *group) unplaced() string {
	if g.left == 0 {
		return ""
	}
	return g.members[len(g.members)-g.left].name
}
