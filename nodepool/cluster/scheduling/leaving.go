package scheduling

import (
	"github.com/foresail/foresail/nodepool/cluster"
)

// A leaving node is being emptied, and its Node will be deleted: by this pool or another one, by an interruption or
// a repair, by Karpenter, cluster-autoscaler or a person. While the removal of a node is examined, it counts as
// leaving.
//
//   - It takes no pods.
//   - Its pods leave one after the other, and kube-scheduler places each replacement while the Node still exists: the
//     topology domains of the node count, with fewer pods in them each time.
//   - A replacement that has a place by these rules has it at once. Another one waits: it has a
//     place only when the Node is deleted. A spread over hosts, for example, counts an empty node
//     as the emptiest host, unless it sets nodeTaintsPolicy: Honor. A third kind has no place even
//     then.
//   - A pod that waits is no demand for nodes. Whether pods may wait depends on why a node is removed: [plan.Homes].
//   - A node that stays as full as it is for long may never be deleted, so no pod waits for it any longer. It still takes
//     no pods, and its own keep the room that they will need: see [cluster.Node.Stalled].
//   - A pod cannot be evicted while as many pods wait as its PodDisruptionBudget allows to be disrupted. A removal that
//     would come to that point never ends, so it does not begin.
//   - Pods of all leaving nodes keep the room that they will need.

// departures are the pods that leave their nodes in the course of a packing.
type departures struct {
	from     map[string]*place     // the leaving nodes, by name
	moved    map[*cluster.Pod]bool // pods that have left their nodes
	away     map[string]int        // by PodDisruptionBudget: pods that have left and have no place yet
	deadlock *batch                // the first that could not be evicted any more
}

// next has the next pod of a batch leave its node, and reports whether there was one.
func (d *departures) next(b *batch) bool {
	if b.gone == len(b.members) || b.role == pending {
		return false
	}
	m := b.members[b.gone]
	b.gone++
	d.moved[m.bound] = true
	if at := d.from[m.from]; at != nil && !at.gone && b.rules != nil {
		b.rules.remove(at)
		at.lost = append(at.lost, taken{b.group, 1, b.rules.matched})
	}
	return true
}

// nextByBudget is next. It records a deadlock if so many pods of the budget wait that the next one cannot be evicted.
func (d *departures) nextByBudget(b *batch) bool {
	if budget := b.budget; budget != nil && b.role == asked && b.gone < len(b.members) {
		if d.away[budget.Name] >= mayBeAway(budget) && d.deadlock == nil {
			d.deadlock = b
		}
		d.away[budget.Name]++
	}
	return d.next(b)
}

// arrived notes that a pod of a batch has a place again.
func (d *departures) arrived(b *batch) {
	if b.budget != nil && b.role == asked {
		d.away[b.budget.Name]--
	}
}

// mayBeAway returns the number of pods of a budget that may wait at once. A budget that allows none
// now does so because of pods that are away for a moment, or it blocks the node anyway.
func mayBeAway(b *cluster.Budget) int { return max(1, b.Allowed) }
