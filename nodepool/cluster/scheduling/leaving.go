package scheduling

import (
	"github.com/foresail/foresail/nodepool/cluster"
)

// A leaving node is being drained, and its Node will be deleted: by this pool or another one, by an
// interruption or a repair, by Karpenter, cluster-autoscaler or a person. In a simulation the
// removed node counts as leaving.
//
//   - It takes no pods.
//   - Its pods leave one after the other, and kube-scheduler places each replacement while the Node still exists: the
//     topology domains of the node count, with ever fewer pods in them.
//   - A replacement that has a place by these rules gets it at once. Another one waits: it has a
//     place only when the Node is deleted. A spread over hosts, for example, counts an empty node
//     as the emptiest host, unless it sets nodeTaintsPolicy: Honor. A third kind has no place even
//     then.
//   - A pod that waits needs no new node. Whether pods may wait depends on the reason of a removal: [plan.Simulator].
//   - A node that keeps all its pods for long may never be deleted, so no pod waits for it any
//     longer. It still takes no pods, and its own keep the room that they will need: see
//     [cluster.Node.Stalled].
//   - A pod cannot be evicted while as many pods wait as its PodDisruptionBudget allows to be disrupted. A removal that
//     would come to that point would never end, so it does not begin.
//   - Pods of all leaving nodes keep the room that they will need.

// departures records the pods that leave their nodes during a packing.
type departures struct {
	from     map[string]*place     // the leaving nodes, by name
	moved    map[*cluster.Pod]bool // pods that have left their nodes
	away     map[string]int        // by PodDisruptionBudget: pods that have left and have no place yet
	deadlock *batch                // the first that could not be evicted any more
}

// next makes the next pod of a batch leave its node, and reports whether there was one.
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

// nextByBudget is next, but records a deadlock if so many pods of the budget wait that the next one
// cannot be evicted.
func (d *departures) nextByBudget(b *batch) bool {
	if budget := b.budget; budget != nil && b.role == examined && b.gone < len(b.members) {
		if d.away[budget.Name] >= mayBeAway(budget) && d.deadlock == nil {
			d.deadlock = b
		}
		d.away[budget.Name]++
	}
	return d.next(b)
}

// arrived records that a pod of a batch has a place again.
func (d *departures) arrived(b *batch) {
	if b.budget != nil && b.role == examined {
		d.away[b.budget.Name]--
	}
}

// mayBeAway returns the number of pods of a budget that may wait at once. If a budget allows none
// now, some pods are unavailable for a moment, or it blocks the node anyway.
func mayBeAway(b *cluster.Budget) int { return max(1, b.Allowed) }
