package plan

import "github.com/foresail/foresail/nodepool/state"

// MaxCandidates bounds the candidates of one decision.
const MaxCandidates = 100

// candidates returns the workers that would be removed next if the load stays as it is, in order:
// those that a scale-down would choose now, were it not limited by the batch, the cooldown or
// Idle.For. There are none while the pool grows or needs to, while pods are unschedulable, and
// while removals are not allowed because too little is known or too many workers are unready.
//
// They are published so that their nodes empty gradually: the scheduler extender prefers every
// other node, and nodes have Idle.For to empty. A pool that consolidates names candidates as soon
// as it has spare workers, even while it is busy. Other pools name none before the whole pool is
// idle: idleness compares means over all workers, so emptying some of them would not make the pool
// idle sooner, and would crowd the others. With idle limits of 1 or more a pool is idle as soon as
// it has spare workers.
//
// candidates does not check where their pods would run, because that is too expensive in every
// cycle. For some it turns out at the removal.
//
// The choice is stable: workers are compared by use and by pods, and a candidate gets ever fewer of
// these than the workers that take over its share. If fewer workers are spare, the list is a prefix
// of the longer one. Only the last workers of zones, and those that OnDemandBase keeps, may change.
func candidates(f *facts, d Decision) []Target {
	if f.Pool.Deleting || d.Step == ScaleUp || f.Record.ActionKind() == state.ActionUp || f.WorkersErr != "" ||
		f.Pending.any() || len(f.unknown) > 0 || f.distrusted() {
		return nil
	}
	if reason, _ := f.recommended.withheld(len(f.staying)); reason != "" {
		return nil
	}
	out, _ := targets(f, min(removableNow(f), MaxCandidates), nil, PoolIdle)
	return out
}

// removableNow returns the number of workers that may be removed now: those above a maximum that was
// lowered, whatever the load, and those that an idle pool can spare.
func removableNow(f *facts) int {
	n := len(f.staying)
	most := max(0, n-f.Pool.Max)
	if f.idle.holds() || consolidates(f.census) {
		extra, _ := spare(f)
		most = max(most, extra)
	}
	return min(most, n-f.Pool.Min)
}
