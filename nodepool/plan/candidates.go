package plan

import "github.com/foresail/foresail/nodepool/state"

// MaxCandidates is how many candidates a decision names at most.
const MaxCandidates = 100

// candidates returns the workers that would be removed next if the pool stays as it is, in order:
// those that a scale-down would choose now, were it not held back by the batch, the cooldown or the
// time for which the pool must have been idle. There are none while the pool grows or wants to,
// while pods are unschedulable, and while too little is known or too many workers are unready for
// anything to be removed.
//
// They are named so that nodes empty by themselves: the scheduler extender prefers every other
// node. Idle.For is the time that nodes have to do so. A pool that consolidates names them as soon
// as it has spare workers, also while it is busy. One that does not names none before it is idle as
// a whole: idleness compares means over all workers, so emptying some of them would not make it
// idle sooner, but crowd the others. A pool without limits of idleness (from 1 on) is idle as soon
// as it has spare workers.
//
// Where their pods would run is not asked, as that costs too much in each cycle: for some it turns
// out when they are to go.
//
// Naming a worker keeps it named: workers are compared by use and by pods, of which a candidate
// gets ever fewer than those that take its share. Fewer spare ones are the first of more. Only the
// last workers of zones, and those that OnDemandBase keeps, may change.
func candidates(f *facts, d Decision) []Target {
	if f.Pool.Deleting || d.Step == ScaleUp || f.Record.ActionKind() == state.ActionUp || f.WorkersErr != "" ||
		f.Pending.any() || len(f.unknown) > 0 || f.distrusted() {
		return nil
	}
	if reason, _ := f.recommended.withheld(len(f.staying)); reason != "" {
		return nil
	}
	out, _ := targets(f, min(dispensable(f), MaxCandidates), nil, PoolIdle)
	return out
}

// dispensable returns how many workers may go at this moment: those above a maximum that was
// lowered, whatever the load, and those that an idle pool has to spare.
func dispensable(f *facts) int {
	n := len(f.staying)
	most := max(0, n-f.Pool.Max)
	if f.idle.holds() || consolidates(f.census) {
		extra, _ := spare(f)
		most = max(most, extra)
	}
	return min(most, n-f.Pool.Min)
}
