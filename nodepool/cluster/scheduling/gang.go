package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
)

// A gang is scheduled as a whole: nodes for a part of it would stay empty. It gets nodes for all of
// its pods or for none.

// whyGang is the reason for a pod that gets no node although one could run it.
const whyGang = "not all pods of its group could run on nodes of the pool, and a group is scheduled as a whole"

// brokenGang returns a gang for which new nodes would be useless, "" if there is none: some of its
// pods have no place, or more new nodes are needed than can be launched. A part of a gang is never
// scheduled, so its nodes would stay empty.
func brokenGang(p *packer, in *Input) string {
	launched, nodes := map[string]bool{}, 0
	for _, at := range p.nodes.open {
		if at.kind != added {
			continue
		}
		nodes++
		for _, t := range at.takes {
			launched[t.group.gang] = true
		}
	}
	delete(launched, "") // pods that are scheduled alone
	tooMany := in.MaxNodes != 0 && nodes > max(0, in.MaxNodes)
	incomplete := incompleteGangs(p, in.Pods)
	for _, gang := range slices.Sorted(maps.Keys(launched)) {
		if tooMany || incomplete[gang] {
			return gang
		}
	}
	return ""
}

// incompleteGangs returns the gangs with a pod that has no place.
func incompleteGangs(p *packer, pods []cluster.Pending) map[string]bool {
	out := map[string]bool{}
	for _, b := range p.batches {
		out[b.gang] = out[b.gang] || b.left > 0
	}
	for _, pod := range pods {
		if pod.Stuck != "" {
			out[pod.Gang] = true
		}
	}
	return out
}

// without leaves out the pods of a gang, and adds them to the unhelped ones.
func without(pods []cluster.Pending, gang string, unhelped []fleet.Unhelped) (
	rest []cluster.Pending, more []fleet.Unhelped,
) {
	for _, p := range pods {
		if p.Gang != gang {
			rest = append(rest, p)
			continue
		}
		unhelped = append(unhelped, fleet.Unhelped{
			Pod: nameOf(p), Reason: cmp.Or(p.Stuck, whyGang),
		})
	}
	return rest, unhelped
}

// heldByCapacity returns the pods of gangs, by namespace/name, that must wait until the cloud has
// capacity for others of their gang: those need new nodes that could not be launched at the last
// try. Only nodes for these are recommended, so that the launch is tried again. The gang gets the
// rest of its nodes once these are being launched.
func heldByCapacity(p *packer) map[string]bool {
	short := partlyRefused(p)
	out := map[string]bool{}
	for _, b := range p.batches {
		if short[b.gang] && b.role == pending && !b.refused {
			for _, m := range b.members {
				out[m.name] = true
			}
		}
	}
	return out
}

// partlyRefused returns the gangs with new nodes of which some could not be launched at the last try.
func partlyRefused(p *packer) map[string]bool {
	refused, others := map[string]bool{}, map[string]bool{}
	for _, b := range p.batches {
		if b.gang != "" && b.role == pending && b.new > 0 {
			refused[b.gang] = refused[b.gang] || b.refused
			others[b.gang] = others[b.gang] || !b.refused
		}
	}
	maps.DeleteFunc(refused, func(gang string, is bool) bool { return !is || !others[gang] })
	return refused
}
