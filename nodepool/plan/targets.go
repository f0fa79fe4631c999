package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// maxQuestions bounds how often one choice of workers asks [Homes]: each question costs a
	// packing of all nodes.
	maxQuestions = 64
	// maxUnmovable bounds how many workers are refused because of [Homes]. The next decisions ask
	// about others.
	maxUnmovable = 32
)

// targets chooses up to most workers to be removed, one after the other so that each sees the zones
// and the room as the ones before leave them, and returns why the others must not go. homes may be
// nil.
func targets(f *facts, most int, homes Homes, reason Reason) ([]Target, []Refusal) {
	if homes != nil && most > 1 { // as a rule all have a place elsewhere, which one question shows
		all, refused := oneByOne(f, most, nil, reason)
		nodes := make([]string, len(all))
		for i, t := range all {
			nodes[i] = t.Node
		}
		if len(all) > 0 && homes.Without(nodes, MustGo(reason)) == "" && firstAlone(homes, nodes, MustGo(reason)) == "" {
			return all, refused
		}
	}
	return oneByOne(f, most, homes, reason)
}

// oneByOne chooses targets and asks about each of them alone.
func oneByOne(f *facts, most int, homes Homes, reason Reason) (chosen []Target, refused []Refusal) {
	left := newSpread(f.Snapshot, f.staying)
	mayGo, refused := removableByZone(f, left, reason)
	var leaving []string // nodes
	for unmovable, asked := 0, 0; len(chosen) < most && unmovable < maxUnmovable && asked < maxQuestions; {
		w, ok := nextOf(mayGo, left, removalOrder(f.Pool, left))
		if !ok {
			break
		}
		mayGo[w.Zone] = mayGo[w.Zone][1:]
		if homes != nil {
			asked++
			if why := homes.Without(append(leaving, w.Node.Name), MustGo(reason)); why != "" {
				refused = append(refused, Refusal{Worker: w.Node.Name, Reason: why, Homeless: len(leaving) == 0})
				unmovable++
				continue
			}
		}
		chosen = append(chosen, targetOf(w))
		leaving = append(leaving, w.Node.Name)
		left.leave(w)
	}
	slices.SortFunc(refused, byWorker)
	return chosen, refused
}

// removableByZone returns the workers that may go, in their order, and why the others may not.
func removableByZone(f *facts, left *spread, reason Reason) (zones map[string][]*Instance, refused []Refusal) {
	zones = map[string][]*Instance{}
	for _, w := range f.staying {
		if why := cmp.Or(refusal(f.census, w, MustGo(reason)), left.keeps(w)); why != "" {
			refused = append(refused, Refusal{Worker: w.name(), Reason: why})
			continue
		}
		zones[w.Zone] = append(zones[w.Zone], w)
	}
	for _, list := range zones { // workers of one zone keep their order when others leave it
		slices.SortFunc(list, removalOrder(f.Pool, left))
	}
	return zones, refused
}

func byWorker(a, b Refusal) int { return strings.Compare(a.Worker, b.Worker) }

// nextOf returns which of the first ones of the zones goes next: the last of a zone goes when each
// zone has only that. Workers that are kept are dropped.
func nextOf(zones map[string][]*Instance, left *spread, order func(a, b *Instance) int) (best *Instance, ok bool) {
	for zone, list := range zones {
		for len(list) > 0 && left.keeps(list[0]) != "" {
			list = list[1:]
		}
		zones[zone] = list
		switch {
		case len(list) == 0:
		case !ok, cmp.Or(compareBool(!left.last(list[0]), !left.last(best)), order(list[0], best)) < 0:
			best, ok = list[0], true
		}
	}
	return best, ok
}

// firstAlone returns why the first of several nodes that could go together could not go alone: it
// is emptied while the others still have their pods, and spread constraints can allow the one and
// not the other.
func firstAlone(homes Homes, nodes []string, mayWait bool, added ...fleet.Placement) string {
	return homes.Without(nodes[:1], mayWait, added...)
}
