package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
)

// maxHomeless bounds how many workers are refused as [Homes] says, which is not cheap to ask. The next decisions ask about others.
const maxHomeless = 32

// targets chooses up to most workers to be removed, one after the other so that each sees the zones and the room as the
// ones before leave them, and says of those that must not go why.
//
// Only a ready worker whose use is known goes: one that is on its way is about to take load, one that is not ready cannot
// be drained, and what is not known is not idle. Whom the pool keeps for its zone or its market says [spread.keeps].
func (v *view) targets(most int, homes Homes, reason Reason) (targets []Target, refused []Refusal) {
	f := newSpread(v.Snapshot, v.staying)
	mayGo := map[string][]Worker{} // by zone
	for _, w := range v.staying {
		if why := cmp.Or(v.refusal(w, reason.MustGo()), f.keeps(w)); why != "" {
			refused = append(refused, Refusal{Worker: cmp.Or(w.Node, w.InstanceID), Reason: why})
			continue
		}
		mayGo[w.Zone] = append(mayGo[w.Zone], w)
	}
	if homes != nil && most > 1 { // as a rule all have one, which one question tells
		all, kept := v.targets(most, nil, reason)
		nodes := nodesOf(all)
		if len(all) > 0 && homes.Without(nodes, reason.MustGo()) == "" && firstAlone(homes, nodes, reason.MustGo()) == "" {
			return all, kept
		}
	}
	defer func() {
		slices.SortFunc(refused, func(a, b Refusal) int { return strings.Compare(a.Worker, b.Worker) })
	}()
	if most <= 0 {
		return nil, refused
	}
	for _, list := range mayGo { // those of one zone compare alike whoever has left it
		slices.SortFunc(list, func(a, b Worker) int { return v.order(a, b, f) })
	}
	var leaving []string // nodes
	for homeless, asked := 0, 0; len(targets) < most && homeless < maxHomeless && asked < maxQuestions; {
		w, ok := v.next(mayGo, f)
		if !ok {
			break
		}
		mayGo[w.Zone] = mayGo[w.Zone][1:]
		if homes != nil {
			asked++
			if why := homes.Without(append(leaving, w.Node), reason.MustGo()); why != "" {
				refused = append(refused, Refusal{Worker: w.Node, Reason: why, Homeless: len(leaving) == 0})
				homeless++
				continue
			}
		}
		targets = append(targets, Target{InstanceID: w.InstanceID, Node: w.Node, Zone: w.Zone})
		leaving = append(leaving, w.Node)
		f.leave(w)
	}
	return targets, refused
}

// firstAlone returns why the first of several nodes that could go together could not go alone: it is emptied while
// the others still have their pods, and spread constraints can allow the one and not the other.
func firstAlone(homes Homes, nodes []string, mayWait bool, added ...fleet.Placement) string {
	return homes.Without(nodes[:1], mayWait, added...)
}

func nodesOf(list []Target) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Node
	}
	return out
}

// next finds who goes next of the first ones of the zones: the last of a zone goes when each zone has only that. Who is kept
// is not asked about again.
func (v *view) next(mayGo map[string][]Worker, f *spread) (best Worker, ok bool) {
	for zone, list := range mayGo {
		for len(list) > 0 && f.keeps(list[0]) != "" {
			list = list[1:]
		}
		mayGo[zone] = list
		switch {
		case len(list) == 0:
		case !ok, f.last(best) && !f.last(list[0]), f.last(best) == f.last(list[0]) && v.order(list[0], best, f) < 0:
			best, ok = list[0], true
		}
	}
	return best, ok
}

// MustGo reports whether workers that are removed for a reason have to go, rather than save money. Pods may wait then until their
// nodes are deleted, and do not keep these for good if the pool has [Pool.Force].
func (r Reason) MustGo() bool { return r != PoolIdle && r != Underutilized }

// forbidden returns why a worker must not be removed for any reason, "" if it may. must says that it has to go.
func (v *view) forbidden(w Worker, must bool) string {
	forced := must && v.Pool.Force && w.BlockedByPods
	switch until := v.State.DrainBackoff[w.InstanceID]; {
	case w.InstanceID == "":
		return "its instance is not known"
	case w.Node == "":
		return "its node has not joined"
	case w.Blocked != "" && !forced:
		return w.Blocked
	case until.After(v.Now):
		return "it is left alone until " + until.UTC().Format(time.RFC3339) + ", as its drain failed"
	}
	return ""
}

// refusal returns why a worker cannot be removed, whatever the other workers are. must says that it has to go.
func (v *view) refusal(w Worker, must bool) string {
	why := v.forbidden(w, must)
	switch {
	case w.InstanceID != "" && w.Node != "" && !w.Ready && !w.Cordoned:
		return "its node is not ready"
	case why != "":
		return why
	case !w.Known:
		return "what is used of it is not known"
	}
	return ""
}

// order is below zero if a is removed rather than b. Workers that only force can empty come last.
func (v *view) order(a, b Worker, f *spread) int {
	if first := cmp.Or(preferred(a.Blocked != "")-preferred(b.Blocked != ""), preferred(b.Cordoned)-preferred(a.Cordoned), preferred(b.Outdated != "")-preferred(a.Outdated != "")); first != 0 {
		return first
	}
	for _, s := range v.Pool.RemovalOrder {
		if c := compare(s, a, b, f); c != 0 {
			return c
		}
	}
	// Any order will do that does not depend on the one in which the cloud lists its instances.
	return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), strings.Compare(a.Node, b.Node))
}

func preferred(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func compare(s Scorer, a, b Worker, f *spread) int {
	switch s {
	case FullestZone:
		return cmp.Compare(f.workers[b.Zone], f.workers[a.Zone])
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
