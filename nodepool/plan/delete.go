package plan

import (
	"cmp"
	"slices"
)

// beingDeleted is why a pool that is being deleted does what it does.
const beingDeleted = "the WorkerPool is being deleted"

// empty removes all workers of a pool that is being deleted, up to [MaxBatch] at once: the user has
// asked for it. Neither load, minimum, cooldowns and zones nor the places of pods hold it back.
// Blocks of single workers do, and so does doubt.
func empty(f *facts, d Decision) (Decision, verdict) {
	if !f.Pool.Deleting {
		return d, passes
	}
	n := len(f.staying)
	d.Want = 0
	targets, refused := drainable(f)
	d.Refused = refused
	switch {
	case f.Record.ActionKind() != "":
		return d.hold(ActionOpen, "%s, and a %s is open", beingDeleted, f.Record.ActionKind()), decides
	case n == 0:
		return d.hold(PoolDeleted, beingDeleted), decides
	case f.distrusted():
		return distrusts(f, d, beingDeleted), decides
	case len(targets) == 0:
		return d.holdBack(beingDeleted), decides
	}
	d.Targets = targets[:min(len(targets), MaxBatch)]
	d.Step, d.Reason = ScaleDown, PoolDeleted
	d.Message = "Remove " + count(len(d.Targets), "node") + " of " + count(n, "worker") + ": " + beingDeleted
	return d, decides
}

// drainable returns the workers whose nodes can be drained, in the order in which they go, and why
// the others cannot. Those that are not ready go first: the rest of the pool can then be trusted.
func drainable(f *facts) (targets []Target, refused []Refusal) {
	var mayGo []*Instance
	for _, w := range f.staying {
		if why := forbidden(f.census, w, MustGo(PoolDeleted)); why != "" {
			refused = append(refused, Refusal{Worker: w.name(), Reason: why})
			continue
		}
		mayGo = append(mayGo, w)
	}
	slices.SortFunc(refused, byWorker)
	order := removalOrder(f.Pool, newSpread(f.Snapshot, f.staying))
	slices.SortFunc(mayGo, func(a, b *Instance) int {
		return cmp.Or(compareBool(!a.works(), !b.works()), order(a, b))
	})
	for _, w := range mayGo {
		targets = append(targets, targetOf(w))
	}
	return targets, refused
}
