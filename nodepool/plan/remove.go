package plan

import (
	"fmt"
	"strings"
	"time"
)

// removeAboveMaximum removes workers above a maximum that has been lowered, whatever the load, because the user
// asked for it. Otherwise it is as careful as other removals.
func removeAboveMaximum(f *facts, d Decision) (Decision, verdict) {
	n := len(f.staying)
	if n <= f.Pool.Max {
		return d, passes
	}
	if len(f.unknown) > 0 {
		return d.hold(MetricsUnknown, "the maximum is %d, and nothing is removed while this is unknown: %s",
			f.Pool.Max, strings.Join(f.unknown, ", ")), decides
	}
	most := min(n-f.Pool.Max, f.Pool.MaxBatchDown)
	return remove(f, d, most, AboveMaximum, fmt.Sprintf("the maximum is %d", f.Pool.Max)), decides
}

// removeIdle removes workers of a pool that has been idle for long enough. It is the last rule: if it
// holds, nothing is done.
func removeIdle(f *facts, d Decision) (Decision, verdict) {
	n := len(f.staying)
	idleFor := f.Now.Sub(d.IdleSince).Truncate(time.Second)
	switch {
	case n <= f.Pool.Min && f.idle.holds():
		return d.hold(AtMinimum, "the pool is idle, and the minimum is %d", f.Pool.Min), decides
	case n <= f.Pool.Min:
		return d.hold(NothingToDo, "%s", f.recommended.load()), decides
	case f.idle.unknown != "":
		return d.hold(MetricsUnknown, "nothing is removed while this is unknown: %s", f.idle.unknown), decides
	case f.Pending.any():
		return d.hold(BlockedByPendingPods, "%s unschedulable, and %s",
			count(f.Pending.waiting(), "pod"), f.Pending.held()), decides
	case f.idle.busy != "":
		return consolidate(f, d), decides
	case f.Now.Sub(d.IdleSince) < f.Pool.Idle.For:
		return d.hold(NotIdle, "the pool has been idle for %s of %s", idleFor, f.Pool.Idle.For), decides
	}
	most, why := spare(f)
	if most <= 0 {
		return d.hold(LoadAfterRemoval, "%s", why), decides
	}
	left := f.Disruption.Nodes - disrupted(f.census, nil)
	if left <= 0 {
		return d.hold(DisruptionLimited, "the pool has been idle for %s, and %s", idleFor, f.Disruption.Why), decides
	}
	most = min(most, left, f.Pool.MaxBatchDown)
	return remove(f, d, most, PoolIdle, fmt.Sprintf("the pool has been idle for %s", idleFor)), decides
}

// consolidate removes workers of a pool that is not idle but has more than it needs: as many of the
// spare ones as the budget allows, if the pods of each fit on the others. The present and predicted
// load must have allowed that for Idle.For.
func consolidate(f *facts, d Decision) Decision {
	spareFor := f.Now.Sub(d.SpareSince).Truncate(time.Second)
	switch {
	case !consolidates(f.census), d.SpareSince.IsZero():
		return d.hold(NotIdle, "%s", f.idle.busy)
	case spareFor < f.Pool.Idle.For:
		return d.hold(NotIdle, "%s; fewer workers would have been enough for %s of %s",
			f.idle.busy, spareFor, f.Pool.Idle.For)
	}
	extra, _ := spare(f)
	enough := count(d.Workers-extra, "worker")
	most, why := disruptable(f.census)
	if most <= 0 {
		return d.hold(DisruptionLimited, "%s would be enough, and %s", enough, why)
	}
	return remove(f, d, min(extra, most, MaxBatch), Underutilized, fmt.Sprintf(
		"their pods fit on the other workers, and for %s %s would have been enough", spareFor, enough))
}

// remove chooses up to most workers, unless observations cannot be trusted or the cooldown has not
// passed.
func remove(f *facts, d Decision, most int, reason Reason, why string) Decision {
	n := len(f.staying)
	most = min(most, n-f.Pool.Min)
	if most <= 0 {
		return d.hold(AtMinimum, "%s, and the minimum is %d", why, f.Pool.Min)
	}
	d.Desired = n - most
	if f.distrusted() {
		return holdTooManyUnready(f, d, why)
	}
	if left := coolsDown(f.census); left > 0 {
		return d.hold(CoolingDown, "%s, and the cooldown of scale-downs, %s, has %s left",
			why, f.Pool.CooldownDown, short(left))
	}
	chosen, refused := targets(f, most, f.Simulator, reason)
	earlier := d.Refused
	d.Targets, d.Refused = chosen, refused
	d = d.withRefusals(earlier)
	if len(chosen) == 0 {
		return d.holdAllRefused(why)
	}
	d.Desired = n - len(chosen)
	d.Step, d.Reason = ScaleDown, reason
	d.Message = fmt.Sprintf("Remove %d of %s: %s", len(chosen), count(n, "worker"), why)
	return d
}

// holdTooManyUnready holds because too many workers are unready.
func holdTooManyUnready(f *facts, d Decision, why string) Decision {
	return d.hold(TooManyUnready, "%s, but %d of %d are unready, more than %.4g%% and more than %d: "+
		"observations cannot be trusted", why, f.unready, len(f.staying), 100*f.Pool.DistrustShare, f.Pool.DistrustCount)
}
