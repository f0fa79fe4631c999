package scheduling

import (
	"cmp"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
)

// Takes reports whether an empty node of one of the offers could run a pod, as far as other pods do not matter.
func Takes(in Input, pod cluster.Pending) bool {
	in.Pods, in.Nodes, in.Displaced, in.OnTheWay, in.Joining = []cluster.Pending{pod}, nil, nil, nil, nil
	if !slices.ContainsFunc(in.Offers, sizeKnown) {
		return false
	}
	p := newPacker(&in, newWorld(&in), subjectsOf(&in), nil)
	return len(p.batches) == 1 && p.batches[0].hasShape()
}

// Pack returns what the pending pods need. Equal inputs have equal results.
func Pack(in Input) Result {
	if len(in.Pods) == 0 {
		return Result{Known: true}
	}
	if !slices.ContainsFunc(in.Offers, sizeKnown) {
		return Result{}
	}
	var left []fleet.Unhelped
	for {
		p := packed(in)
		broken := brokenGang(p, &in)
		if broken == "" {
			r := resultOf(p)
			r.Unhelped = slices.Concat(r.Unhelped, stuckOf(in.Pods), left)
			slices.SortFunc(r.Unhelped, byPod)
			return r
		}
		in.Pods, left = without(in.Pods, broken, left)
	}
}

// packed finds a place for every pod that has one: on nodes that exist or are on their way, then on
// these as they are when the leaving nodes are deleted, and at last on new ones. Pods that leave
// come after those that wait, and get no new node.
func packed(in Input) *packer {
	p := newPacker(&in, newWorld(&in), subjectsOf(&in), nil)
	p.nodes.addLaunched(in.OnTheWay)
	if !slices.ContainsFunc(p.nodes.existing, func(at *place) bool { return at.leaving }) {
		p.rounds(p.batches)
		return p
	}
	var waiting, leave []*batch
	for _, b := range p.batches {
		if b.role == pending {
			waiting = append(waiting, b)
		} else {
			leave = append(leave, b)
		}
	}
	p.full = true
	p.rounds(waiting)
	p.rounds(leave)
	p.vanish()
	p.rounds(waiting)
	p.rounds(leave)
	p.full = false
	p.rounds(waiting)
	return p
}

// stuckOf returns the pods that no node could run now, because of their claims.
func stuckOf(pods []cluster.Pending) (out []fleet.Unhelped) {
	for _, p := range pods {
		if p.Stuck != "" {
			out = append(out, fleet.Unhelped{Pod: p.Pod.Namespace + "/" + p.Pod.Name, Reason: p.Stuck})
		}
	}
	return out
}

// whyGang is why a pod gets no node that could run it.
const whyGang = "not all pods of its group could run on nodes of the pool, and a group is scheduled as a whole"

// brokenGang returns a gang that gets new nodes in vain, "" if there is none: some of its pods have
// no place, or there are more new nodes than can be launched. A part of a gang is never scheduled,
// so nodes for a part would stay empty.
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
	delete(launched, "") // pods that are scheduled by themselves
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

// without leaves out the pods of a gang, and adds them to those that are not helped.
func without(pods []cluster.Pending, gang string, unhelped []fleet.Unhelped) (
	rest []cluster.Pending, more []fleet.Unhelped,
) {
	for _, p := range pods {
		if p.Gang != gang {
			rest = append(rest, p)
			continue
		}
		unhelped = append(unhelped, fleet.Unhelped{
			Pod: p.Pod.Namespace + "/" + p.Pod.Name, Reason: cmp.Or(p.Stuck, whyGang),
		})
	}
	return rest, unhelped
}
