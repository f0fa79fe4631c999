package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// victims chooses up to most workers to be removed, one after the other so that each sees the zones as the ones before
// leave them, and says of those that must not go why.
//
// Only a ready worker whose use is known goes: one that is on its way is about to take load, one that is not ready cannot
// be drained, and what is not known is not idle. The last ready worker of a zone stays if the pool has others: of several
// zones none is left without.
func (v *view) victims(most int) ([]Target, []Refusal) {
	z := newZones(v.staying)
	var candidates []Worker
	var refused []Refusal
	for _, w := range v.staying {
		if why := v.refusal(w, z); why != "" {
			refused = append(refused, Refusal{Worker: cmp.Or(w.Node, w.InstanceID), Why: why})
			continue
		}
		candidates = append(candidates, w)
	}
	slices.SortFunc(refused, func(a, b Refusal) int { return strings.Compare(a.Worker, b.Worker) })

	var targets []Target
	for len(targets) < most {
		best := -1
		for i, w := range candidates {
			if z.mayLeave(w) && (best < 0 || v.before(w, candidates[best], z)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		w := candidates[best]
		targets = append(targets, Target{InstanceID: w.InstanceID, Node: w.Node, Zone: w.Zone})
		z.leave(w)
		candidates = slices.Delete(candidates, best, best+1)
	}
	return targets, refused
}

func (v *view) refusal(w Worker, z zones) string {
	switch until := v.State.Spared[w.InstanceID]; {
	case w.InstanceID == "":
		return "its instance is not known"
	case w.Node == "":
		return "its node has not joined"
	case !w.Ready && !w.Cordoned:
		return "its node is not ready"
	case w.Blocked != "":
		return w.Blocked
	case until.After(v.Now):
		return "it is left alone until " + until.UTC().Format(time.RFC3339) + ", as its drain failed"
	case !w.Known:
		return "what is used of it is not known"
	case !z.mayLeave(w) && w.Cordoned:
		return fmt.Sprintf("no other one of zone %s is ready", w.Zone)
	case !z.mayLeave(w):
		return fmt.Sprintf("it is the last ready one of zone %s", w.Zone)
	}
	return ""
}

// before tells whether a is removed rather than b.
func (v *view) before(a, b Worker, z zones) bool {
	if a.Cordoned != b.Cordoned {
		return a.Cordoned
	}
	for _, s := range v.Pool.Victims {
		if c := compare(s, a, b, z); c != 0 {
			return c < 0
		}
	}
	// Any order will do that does not depend on the one in which the cloud lists its instances.
	return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), strings.Compare(a.Node, b.Node)) < 0
}

func compare(s Scorer, a, b Worker, z zones) int {
	switch s {
	case FullestZone:
		return cmp.Compare(z.workers[b.Zone], z.workers[a.Zone])
	case Idlest:
		return cmp.Compare(a.Utilisation, b.Utilisation)
	case FewestPods:
		return cmp.Compare(a.Pods, b.Pods)
	case Oldest:
		if a.Launched.IsZero() || b.Launched.IsZero() { // not known: not the oldest
			return cmp.Compare(b.Launched.Unix(), a.Launched.Unix())
		}
		return a.Launched.Compare(b.Launched)
	}
	return 0
}

// zones counts workers by zone.
type zones struct{ workers, ready map[string]int }

func newZones(list []Worker) zones {
	z := zones{workers: map[string]int{}, ready: map[string]int{}}
	for _, w := range list {
		z.workers[w.Zone]++
		if w.Ready {
			z.ready[w.Zone]++
		}
	}
	return z
}

// mayLeave tells whether the zone of a worker has another one that is ready, or is the only one.
func (z zones) mayLeave(w Worker) bool {
	others := z.ready[w.Zone]
	if w.Ready {
		others--
	}
	return len(z.workers) == 1 || others > 0
}

func (z zones) leave(w Worker) {
	z.workers[w.Zone]--
	if w.Ready {
		z.ready[w.Zone]--
	}
}
