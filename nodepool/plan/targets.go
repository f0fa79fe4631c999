package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// maxQuestions bounds the simulations of one choice of workers: each packs all nodes.
	maxQuestions = 64
	// maxUnmovable bounds the workers that are refused by simulation. The next decisions simulate
	// others.
	maxUnmovable = 32
)

// targets chooses up to most workers to be removed, one after the other so that each sees the zones
// and the room that the ones before leave. It returns why the others must stay. simulator may be nil.
func targets(f *facts, most int, simulator Simulator, reason Reason) ([]Target, []Refusal) {
	if simulator != nil && most > 1 { // usually all of them fit elsewhere, which one simulation shows
		all, refused := oneByOne(f, most, nil, reason)
		nodes := make([]string, len(all))
		for i, t := range all {
			nodes[i] = t.Node
		}
		mayWait := MustGo(reason)
		if len(all) > 0 && simulator.Without(nodes, mayWait) == "" && firstAlone(simulator, nodes, mayWait) == "" {
			return all, refused
		}
	}
	return oneByOne(f, most, simulator, reason)
}

// oneByOne chooses targets and simulates each of them alone.
func oneByOne(f *facts, most int, simulator Simulator, reason Reason) (chosen []Target, refused []Refusal) {
	left := newSpread(f.Snapshot, f.staying)
	mayGo, refused := removableByZone(f, left, reason)
	var leaving []string // nodes
	for unmovable, asked := 0, 0; len(chosen) < most && unmovable < maxUnmovable && asked < maxQuestions; {
		w, ok := nextOf(mayGo, left, removalOrder(f.Pool, left))
		if !ok {
			break
		}
		mayGo[w.Zone] = mayGo[w.Zone][1:]
		if simulator != nil {
			asked++
			if why := simulator.Without(append(leaving, w.Node.Name), MustGo(reason)); why != "" {
				refused = append(refused, Refusal{Worker: w.Node.Name, Reason: why, Unmovable: len(leaving) == 0})
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

// removableByZone returns the workers that may be removed, in their order, and why the others may
// not.
func removableByZone(f *facts, left *spread, reason Reason) (zones map[string][]*Instance, refused []Refusal) {
	zones = map[string][]*Instance{}
	for _, w := range f.staying {
		if why := cmp.Or(refusal(f.census, w, MustGo(reason)), left.mustStay(w)); why != "" {
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

// nextOf returns the worker to be removed next, of the first ones of the zones. The last worker of
// a zone is taken only when each zone has just one. Workers that must stay are dropped.
func nextOf(zones map[string][]*Instance, left *spread, order func(a, b *Instance) int) (best *Instance, ok bool) {
	for zone, list := range zones {
		for len(list) > 0 && left.mustStay(list[0]) != "" {
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

// firstAlone returns why the first of several nodes that may be removed together could not be
// removed alone. It is drained while the others still have their pods, and spread constraints can
// allow the one and not the other.
func firstAlone(simulator Simulator, nodes []string, mayWait bool, added ...fleet.Placement) string {
	return simulator.Without(nodes[:1], mayWait, added...)
}
