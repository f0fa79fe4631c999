package plan

// MaxCandidates is how many candidates a decision names at most.
const MaxCandidates = 100

// candidates are the workers that would be removed next if the pool stays as it is, in order: what a scale-down would
// choose now, were it not held back by the batch, the cooldown or the time for which the pool must have been idle. There
// are none while the pool grows or wants to, while pods are unschedulable, and while too little is known or too many
// workers are unready for anything to be removed.
//
// They are named so that nodes empty by themselves: the scheduler extender prefers every other node. Idle.For is the time
// that nodes have to do so. A pool that consolidates names them as soon as it has workers to spare, also while it is busy.
// One that does not names none before it is idle as a whole: that is told by means over its workers, so emptying some
// of them would not make it idle any sooner, but crowd the others. A pool whose limits of idleness are not asked for
// (from 1 on) is idle as soon as it has workers to spare.
//
// Where the pods of those who are named would run is not asked, as it costs too much to be asked at each cycle: of some it turns out
// when they are to go.
//
// Who is named does not swing by that itself: a worker that is named is compared by use and by pods, of which it has ever
// fewer than those that take its share, so that it stays named while the number of workers to spare does. Fewer to spare
// are the first ones of more. Where the last workers of zones are among those to spare, or OnDemandBase keeps some, whom these keep may change.
func (v *view) candidates(d Decision) []Target {
	if v.Pool.Deleting || d.Step == ScaleUp || v.State.Action == ActionUp || v.WorkersErr != "" || v.Pending.any() || len(v.unknown()) > 0 {
		return nil
	}
	if reason, _ := v.withheld(); reason != "" || v.Pool.Distrusts(v.unready(), len(v.staying)) {
		return nil
	}
	targets, _ := v.targets(min(v.dispensable(), MaxCandidates), nil, PoolIdle)
	return targets
}

// dispensable is how many workers may go by what is seen now: those above a maximum that was lowered, whatever the load,
// and those that an idle pool has to spare.
func (v *view) dispensable() int {
	n := len(v.staying)
	most := 0
	if n > v.Pool.Max {
		most = n - v.Pool.Max
	}
	if v.idle.holds() || v.consolidates() {
		spare, _ := v.spare()
		most = max(most, spare)
	}
	return min(most, n-v.Pool.Min)
}
