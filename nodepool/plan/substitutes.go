package plan

import (
	"cmp"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// MaxSubstitutes bounds consecutive substitutes for one slot that use up no placement.
const MaxSubstitutes = 3

// substitutes places nodes instead of lost slots, and instead of reclaimed instances as far as the
// decision needs them. There are fewer if no placement is left.
func substitutes(f *facts, d Decision) (subs []Substitute, replacements []Replacement) {
	if f.Record.ActionKind() != state.ActionUp || f.Pool.Deleting || f.WorkersErr != "" {
		return nil, nil
	}
	p := newPlacer(f.census)
	for _, l := range f.lost {
		if at, alternatives, ok := substituteFor(f, p, l); ok {
			subs = append(subs, Substitute{l.Number, at, alternatives})
		}
	}
	soonest := slices.SortedFunc(slices.Values(f.notices), func(a, b notice) int {
		return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.instance, b.instance))
	})
	for _, n := range soonest {
		if len(f.staying)+len(f.plannedAt)+len(subs)+len(replacements) >= d.Desired {
			break
		}
		willDo := ahead(f, len(replacements))
		at, ok := p.next(willDo)
		if !ok {
			willDo = anything
			at, ok = p.next(willDo)
		}
		if ok {
			replacements = append(replacements, Replacement{n.instance, at, p.alternatives(at, willDo)})
		}
	}
	return subs, replacements
}

// ahead returns which placements are suitable for the k-th node that is launched before its pods
// are pending.
func ahead(f *facts, k int) func(fleet.Placement) bool {
	for _, s := range f.Pending.Replacing {
		if k < s.Nodes {
			return s.Takes
		}
		k -= s.Nodes
	}
	return anything
}

// substituteFor places a node instead of a lost one. If pods need the shape of the lost one, it is
// another one that they fit on. A placement that was not refused is launched again without
// alternatives, because the outcome of the first launch is unknown.
func substituteFor(f *facts, p *placer, l state.Slot) (at fleet.Placement, alternatives []string, ok bool) {
	willDo := anything
	if !l.Refused {
		return l.Placement, nil, l.Attempt < MaxSubstitutes
	}
	if l.Outdated { // the removal of the old worker was checked for this shape only
		willDo = func(at fleet.Placement) bool {
			return at.Zone == l.Zone && (at.Market == l.Market || at.Market == fleet.OnDemand)
		}
	}
	if l.Pinned {
		shapes := slices.Concat(f.Pending.Shapes, f.Pending.Replacing, f.Pending.Later)
		at := slices.IndexFunc(shapes, func(s fleet.Shape) bool { return s.Takes(l.Placement) })
		if at < 0 {
			return fleet.Placement{}, nil, false // the pods run elsewhere by now
		}
		willDo = shapes[at].Takes
	}
	untried := func(at fleet.Placement) bool { return at != l.Placement && willDo(at) }
	out := p.place(nil, 1, untried)
	if len(out) == 0 {
		return fleet.Placement{}, nil, false
	}
	if l.Outdated {
		return out[0], nil, true
	}
	return out[0], p.alternatives(out[0], untried), true
}
