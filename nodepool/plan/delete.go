package plan

import (
	"cmp"
	"slices"
	"strings"
)

// why a pool that is being deleted does what it does.
const beingDeleted = "the WorkerPool is being deleted"

// empty removes all workers of a pool that is being deleted, up to [MaxBatch] at once: somebody has said so. Neither load,
// minimum, cooldowns and zones nor the homes of pods hold it back. What keeps a single worker does, and so does doubt.
func (v *view) empty(d Decision) Decision {
	n := len(v.staying)
	d.Want = 0
	targets, refused := v.all()
	d.Refused = refused
	switch {
	case v.State.Action != "":
		return d.hold(ActionOpen, "%s, and a %s is open", beingDeleted, v.State.Action)
	case n == 0:
		return d.hold(PoolDeleted, beingDeleted)
	case v.Pool.Distrusts(v.unready(), n):
		return v.distrusts(d, beingDeleted)
	case len(targets) == 0:
		return d.holdBack(beingDeleted)
	}
	d.Targets = targets[:min(len(targets), MaxBatch)]
	d.Step, d.Reason = ScaleDown, PoolDeleted
	d.Message = "Remove " + count(len(d.Targets), "node") + " of " + count(n, "worker") + ": " + beingDeleted
	return d
}

// all returns the workers whose nodes can be drained, in the order in which they go, and why the others cannot. Those that are
// not ready go first: what is left of the pool can then be trusted.
func (v *view) all() (targets []Target, refused []Refusal) {
	var mayGo []Worker
	for _, w := range v.staying {
		if why := v.forbidden(w, PoolDeleted.MustGo()); why != "" {
			refused = append(refused, Refusal{Worker: cmp.Or(w.Node, w.InstanceID), Reason: why})
			continue
		}
		mayGo = append(mayGo, w)
	}
	slices.SortFunc(refused, func(a, b Refusal) int { return strings.Compare(a.Worker, b.Worker) })
	f := newSpread(v.Snapshot, v.staying)
	slices.SortFunc(mayGo, func(a, b Worker) int {
		return cmp.Or(preferred(works(a))-preferred(works(b)), v.order(a, b, f))
	})
	for _, w := range mayGo {
		targets = append(targets, Target{InstanceID: w.InstanceID, Node: w.Node, Zone: w.Zone})
	}
	return targets, refused
}

func works(w Worker) bool { return w.Ready || w.Cordoned }
