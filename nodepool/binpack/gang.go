package binpack

import (
	"cmp"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
)

// whyGang is why a pod gets no node that could run it.
const whyGang = "not all pods of its group could run on nodes of the pool, and a group is scheduled as a whole"

// brokenGang returns a gang of which some pods have a place on a new node and others have none anywhere, or none on
// as many nodes as can be launched; "" if there is none. A part of a gang is never scheduled, so nodes for a part
// would stay empty.
func (p *packer) brokenGang(maxNodes int) string {
	placed, broken := map[string]bool{}, map[string]bool{}
	nodes := 0
	for _, at := range p.places {
		if at.kind == added {
			nodes++
		}
		for _, t := range at.takes {
			placed[t.group.gang] = placed[t.group.gang] || at.kind == added
		}
	}
	for _, g := range p.groups {
		broken[g.gang] = broken[g.gang] || g.left > 0
	}
	for _, gang := range p.stuckGangs {
		broken[gang] = true
	}
	out := ""
	for gang := range placed {
		tooMany := maxNodes > 0 && nodes > maxNodes
		if gang != "" && placed[gang] && (broken[gang] || tooMany) && (out == "" || gang < out) {
			out = gang
		}
	}
	return out
}

// without leaves out the pods of a gang, and adds them to those that are not helped.
func without(pods []clusterstate.Pending, gang string, unhelped []plan.Unhelped) (
	rest []clusterstate.Pending, more []plan.Unhelped,
) {
	for _, p := range pods {
		if p.Gang != gang {
			rest = append(rest, p)
			continue
		}
		unhelped = append(unhelped, plan.Unhelped{Pod: p.Pod.Namespace + "/" + p.Pod.Name, Reason: cmp.Or(p.Stuck, whyGang)})
	}
	return rest, unhelped
}

func byPod(a, b plan.Unhelped) int { return cmp.Compare(a.Pod, b.Pod) }
