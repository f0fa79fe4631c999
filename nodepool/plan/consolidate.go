package plan

import (
	"fmt"
	"time"
)

// consolidate removes workers of a pool that is not idle and has more than it needs: as many as the budget allows of those that
// [view.spare] counts, if the pods of each have a place on the others. The load, predicted as well, must have allowed that for
// Idle.For.
func (v *view) consolidate(d Decision) Decision {
	spareFor := v.Now.Sub(d.SpareSince).Truncate(time.Second)
	switch {
	case !v.consolidates(), d.SpareSince.IsZero():
		return d.hold(NotIdle, "%s", v.idle.busy)
	case spareFor < v.Pool.Idle.For:
		return d.hold(NotIdle, "%s; for %s of %s fewer workers would have been enough", v.idle.busy, spareFor, v.Pool.Idle.For)
	}
	spare, _ := v.spare()
	most, why := v.disruptable()
	if most <= 0 {
		return d.hold(DisruptionLimited, "%s would be enough, and %s", count(d.Workers-spare, "worker"), why)
	}
	return v.removeUpTo(d, min(spare, most, MaxBatch), Underutilized, fmt.Sprintf("the pods of others have a place on the rest, and for %s %s would have been enough", spareFor, count(d.Workers-spare, "worker")))
}

// consolidates tells whether workers go before the pool is idle. A signal that has a threshold of its own for removals is asked for
// more than that.
func (v *view) consolidates() bool {
	if !v.Pool.Consolidate {
		return false
	}
	for _, s := range v.Signals {
		if s.Down > 0 && !(s.Now < s.Down) {
			return false
		}
	}
	return true
}

// spareSince is since when fewer workers would have been enough without a gap, zero if they would not be. While something is not known
// they would not.
func (v *view) spareSince() time.Time {
	if !v.Pool.Consolidate || len(v.unknown()) > 0 || v.Pending.any() {
		return time.Time{}
	}
	spare, _ := v.spare()
	return v.lasting(v.State.SpareSince, spare > 0)
}

// lasting is since when something has held, by what is remembered, zero if it does not. While nobody looked it did not.
func (v *view) lasting(since time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case since.IsZero(), since.After(v.Now), v.unseen():
		return v.Now
	}
	return since
}

// unseen reports whether the last decision is so long ago that what held then may not have held since.
func (v *view) unseen() bool {
	return !v.State.DecidedAt.IsZero() && v.Now.Sub(v.State.DecidedAt) > idleGap
}
