package scheduling

import (
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
)

// Takes reports whether an empty node of one of the offers could run a pod, ignoring rules about
// other pods.
func Takes(in Input, pod cluster.Pending) bool {
	in.Pods, in.Nodes, in.Displaced, in.OnTheWay, in.NewlyReady = []cluster.Pending{pod}, nil, nil, nil, nil
	if !slices.ContainsFunc(in.Offers, sizeKnown) {
		return false
	}
	p := newPacker(&in, newWorld(&in), subjectsOf(&in), nil)
	return len(p.batches) == 1 && p.batches[0].hasShape()
}

// Pack returns what the pending pods need. It is deterministic.
func Pack(in Input) Result {
	sized := slices.ContainsFunc(in.Offers, sizeKnown)
	switch {
	case len(in.Pods) == 0 && (len(in.Displaced) == 0 || !sized):
		return Result{Known: true}
	case !sized:
		return Result{}
	}
	in.world = worldOf(&in)
	var unhelped []fleet.Unhelped
	var held []string
	for {
		p := packed(in)
		if broken := brokenGang(p, &in); broken != "" {
			in.Pods, unhelped = without(in.Pods, broken, unhelped)
			continue
		}
		if hold := heldByCapacity(p); len(hold) > 0 {
			in.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p cluster.Pending) bool { return hold[nameOf(p)] })
			held = slices.AppendSeq(held, maps.Keys(hold))
			continue
		}
		r := resultOf(p)
		r.hold(held)
		r.Unhelped = slices.Concat(r.Unhelped, stuckOf(in.Pods), unhelped)
		slices.SortFunc(r.Unhelped, byPod)
		return r
	}
}

// packed finds a place for every pod that has one: on nodes that exist or are being launched, then
// on these after the leaving nodes have been deleted, and at last on new ones. Pods that leave come
// after pending ones, and do not need new nodes yet. If their node is replaced before it is
// deleted, new nodes for them are added ahead, to find out which shape the replacement needs.
func packed(in Input) *packer {
	p := newPacker(&in, worldOf(&in), subjectsOf(&in), nil)
	p.nodes.addLaunched(in.OnTheWay)
	if len(p.nodes.leaving)+len(in.Displaced) == 0 {
		p.rounds(p.batches)
		return p
	}
	var waiting, leave, ahead []*batch
	for _, b := range p.batches {
		if b.role == pending {
			waiting = append(waiting, b)
		} else {
			leave = append(leave, b)
		}
		if b.role == replaced {
			ahead = append(ahead, b)
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
	demanded := p.nodes.open
	p.nodes.open = nil
	p.rounds(ahead)
	p.nodes.open, p.ahead = demanded, p.nodes.open
	return p
}

// stuckOf returns the pods that no node could run now, because of their claims.
func stuckOf(pods []cluster.Pending) (out []fleet.Unhelped) {
	for _, p := range pods {
		if p.Stuck != "" {
			out = append(out, fleet.Unhelped{Pod: nameOf(p), Reason: p.Stuck})
		}
	}
	return out
}
