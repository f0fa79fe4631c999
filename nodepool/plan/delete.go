package plan

import (
	"cmp"
	"slices"
)

// beingDeleted is the reason for everything that a pool does while it is being deleted.
const beingDeleted = "the WorkerPool is being deleted"

// removeAll removes all workers of a pool that is being deleted, at most [MaxBatch] at once. The user
// asked for it, so load, minimum, cooldowns, zones and places of pods do not limit it. Blocks of
// single workers do, and so do observations that cannot be trusted.
func removeAll(f *facts, d Decision) (Decision, verdict) {
	if !f.Pool.Deleting {
		return d, passes
	}
	n := len(f.staying)
	d.Desired = 0
	targets, refused := drainable(f)
	d.Refused = refused
	switch {
	case f.Record.ActionKind() != "":
		return d.hold(ActionOpen, "%s, and a %s is open", beingDeleted, f.Record.ActionKind()), decides
	case n == 0:
		return d.hold(PoolDeleted, beingDeleted), decides
	case f.distrusted():
		return holdTooManyUnready(f, d, beingDeleted), decides
	case len(targets) == 0:
		return d.holdAllRefused(beingDeleted), decides
	}
	d.Targets = targets[:min(len(targets), MaxBatch)]
	d.Step, d.Reason = ScaleDown, PoolDeleted
	d.Message = "Remove " + count(len(d.Targets), "node") + " of " + count(n, "worker") + ": " + beingDeleted
	return d, decides
}

// drainable returns the workers whose nodes can be drained, in the order of their removal, and why
// the others cannot. Workers that are not ready come first, so that observations of the others can
// be trusted again.
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
