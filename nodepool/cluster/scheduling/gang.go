package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
)

// whyGang is why a pod gets no node that could run it.
const whyGang = "not all pods of its group could run on nodes of the pool, and a group is scheduled as a whole"

// brokenGang returns a gang that gets new nodes in vain, "" if there is none: some of its pods have no place, or there are more
// new nodes than can be launched. A part of a gang is never scheduled, so nodes for a part would stay empty.
func (p *packer) brokenGang(maxNodes int) string {
	launched, nodes := map[string]bool{}, 0
	for _, at := range p.places {
		if at.kind != added {
			continue
		}
		nodes++
		for _, t := range at.takes {
			launched[t.group.gang] = true
		}
	}
	delete(launched, "") // pods that are scheduled by themselves
	tooMany := maxNodes != 0 && nodes > max(0, maxNodes)
	incomplete := p.incompleteGangs()
	for _, gang := range slices.Sorted(maps.Keys(launched)) {
		if tooMany || incomplete[gang] {
			return gang
		}
	}
	return ""
}

// incompleteGangs returns the gangs with a pod that has no place.
func (p *packer) incompleteGangs() map[string]bool {
	out := map[string]bool{}
	for _, g := range p.groups {
		out[g.gang] = out[g.gang] || g.left > 0
	}
	for _, gang := range p.stuckGangs {
		out[gang] = true
	}
	return out
}

// without leaves out the pods of a gang, and adds them to those that are not helped.
func without(pods []cluster.Pending, gang string, unhelped []fleet.Unhelped) (
	rest []cluster.Pending, more []fleet.Unhelped,
) {
	for _, p := range pods {
		if p.Gang != gang {
			rest = append(rest, p)
			continue
		}
		unhelped = append(unhelped, fleet.Unhelped{Pod: p.Pod.Namespace + "/" + p.Pod.Name, Reason: cmp.Or(p.Stuck, whyGang)})
	}
	return rest, unhelped
}

func byPod(a, b fleet.Unhelped) int { return cmp.Compare(a.Pod, b.Pod) }
