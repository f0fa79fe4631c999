package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// trim removes workers above a maximum that has been lowered, whatever the load: somebody has said so. It is as careful
// otherwise.
func (v *view) trim(d Decision) Decision {
	n := len(v.staying)
	if u := v.unknown(); len(u) > 0 {
		return d.hold(MetricsUnknown, "the maximum is %d, and nothing is removed while this is not known: %s", v.Pool.Max, strings.Join(u, ", "))
	}
	return v.remove(d, n-v.Pool.Max, AboveMaximum, fmt.Sprintf("the maximum is %d", v.Pool.Max))
}

// shrink removes workers of a pool that has been idle for long enough.
func (v *view) shrink(d Decision) Decision {
	n := len(v.staying)
	idleFor := v.Now.Sub(d.IdleSince).Truncate(time.Second)
	switch {
	case n <= v.Pool.Min && v.idle.holds():
		return d.hold(AtMinimum, "the pool is idle, and the minimum is %d", v.Pool.Min)
	case n <= v.Pool.Min:
		return d.hold(NothingToDo, "%s", v.load())
	case v.idle.unknown != "":
		return d.hold(MetricsUnknown, "nothing is removed while this is not known: %s", v.idle.unknown)
	case v.Pending.any():
		return d.hold(BlockedByPendingPods, "%s unschedulable, and %s", count(v.Pending.waiting(), "pod"), v.Pending.held())
	case v.idle.busy != "":
		return v.consolidate(d)
	case v.Now.Sub(d.IdleSince) < v.Pool.Idle.For:
		return d.hold(NotIdle, "the pool has been idle for %s of %s", idleFor, v.Pool.Idle.For)
	}
	most, why := v.spare()
	if most <= 0 {
		return d.hold(LoadAfterRemoval, "%s", why)
	}
	left := v.Disruption.Nodes - v.disrupted(nil)
	if left <= 0 {
		return d.hold(DisruptionLimited, "the pool has been idle for %s, and %s", idleFor, v.Disruption.Why)
	}
	return v.remove(d, min(most, left), PoolIdle, fmt.Sprintf("the pool has been idle for %s", idleFor))
}

// spare is how many workers may go, and if none why. As many stay as the largest voice asks for, and as each signal says
// must stay for the load to be below its threshold with the margin. What carries load is ready, so of those as many stay.
func (v *view) spare() (int, string) {
	n := len(v.staying)
	spare, why := n-v.Pool.Min, fmt.Sprintf("the minimum is %d", v.Pool.Min)
	for _, o := range v.recommendations {
		if o.counts() && n-o.attainable() < spare {
			spare, why = n-o.attainable(), fmt.Sprintf("%d are recommended: %s", o.attainable(), o.Reason)
		}
	}
	if kept := v.expected.Keep; kept > v.expected.history.Needed && n-kept < spare {
		spare, why = n-kept, v.returns(kept)
	}
	ready := v.ready()
	for _, s := range v.Signals {
		if !s.InformsOnly && ready-s.Fits < spare {
			spare = ready - s.Fits
			why = fmt.Sprintf("%s needs %d ready workers to stay below %.4g with the margin %.4g, and there are %d",
				s.Name, s.Fits, s.Threshold, s.Margin, ready)
		}
	}
	return spare, why
}

// Objection tells why a worker that was to be removed for a reason must stay after all, "" if it need not: something is not
// known any more, the pool is not idle or would not carry its load, the worker is the last of its kind, or its pods would
// have no other node. Workers that are being removed must be Leaving in the snapshot, this one among them; those whose turn
// comes later are there still.
func Objection(s Snapshot, reason Reason, worker string, later []string) string {
	v := newView(s)
	if why := v.objection(reason, later); why != "" {
		return why
	}
	var it Worker
	rest := slices.Clip(v.staying)
	for _, w := range s.Workers {
		switch {
		case w.InstanceID == worker:
			it = w
			rest = append(rest, w)
		case slices.Contains(later, w.InstanceID):
			rest = append(rest, w)
		}
	}
	if reason == Outdated && it.Outdated == "" {
		return "it is not outdated any more"
	}
	if why := newSpread(s, rest).keeps(it); why != "" || it.Node == "" || s.Homes == nil {
		return why
	}
	return s.Homes.Without([]string{it.Node}, reason.MustGo())
}

func (v *view) objection(reason Reason, later []string) string {
	switch {
	case len(v.unknown()) > 0:
		return "this is not known: " + strings.Join(v.unknown(), ", ")
	case reason == Outdated:
		return v.needed(later)
	case reason == Underutilized && !v.consolidates():
		return "the pool does not consolidate any more"
	case reason == Underutilized && v.Disruption.Paused:
		return paused
	case (reason == Underutilized || reason == PoolIdle) && v.overBudget(later) != "":
		return v.overBudget(later)
	case reason == Underutilized && v.Pending.any():
		return count(v.Pending.Pods, "pod") + " unschedulable"
	case reason != PoolIdle && reason != Underutilized:
		return ""
	case reason == Underutilized:
	case v.idle.unknown != "":
		return "this is not known: " + v.idle.unknown
	case v.idle.busy != "":
		return v.idle.busy
	}
	if spare, why := v.spare(); spare < 0 {
		return why
	}
	return ""
}

func (v *view) ready() int {
	n := 0
	for _, w := range v.staying {
		if w.Ready {
			n++
		}
	}
	return n
}

func (v *view) unready() int {
	n := 0
	for _, w := range v.staying {
		if !w.Ready && !w.Cordoned {
			n++
		}
	}
	return n
}

// remove chooses who goes, unless the world is not to be trusted or the cooldown has not passed.
func (v *view) remove(d Decision, most int, reason Reason, why string) Decision {
	return v.removeUpTo(d, min(most, v.Pool.MaxBatchDown), reason, why)
}

func (v *view) removeUpTo(d Decision, most int, reason Reason, why string) Decision {
	n := len(v.staying)
	most = min(most, n-v.Pool.Min)
	if most <= 0 {
		return d.hold(AtMinimum, "%s, and the minimum is %d", why, v.Pool.Min)
	}
	d.Want = n - most
	if v.Pool.Distrusts(v.unready(), n) {
		return v.distrusts(d, why)
	}
	if left := v.coolsDown(); left > 0 {
		return d.hold(CoolingDown, "%s, and the cooldown of scale-downs, %s, has %s left", why, v.Pool.CooldownDown, short(left))
	}
	d.Targets, d.Refused = v.targets(most, v.Homes, reason)
	if len(d.Targets) == 0 {
		return d.holdBack(why)
	}
	d.Want = n - len(d.Targets)
	d.Step, d.Reason = ScaleDown, reason
	d.Message = fmt.Sprintf("Remove %d of %s: %s", len(d.Targets), count(n, "worker"), why)
	return d
}

// holdBack removes nothing, as no worker may go: whoever is not refused is chosen.
func (d Decision) holdBack(why string) Decision {
	first := d.Refused[0]
	return d.hold(NoRemovableNode, "%s, but none may go, such as %s: %s", why, first.Worker, first.Reason)
}

// distrusts removes nothing, as too many workers are unready.
func (v *view) distrusts(d Decision, why string) Decision {
	return d.hold(TooManyUnready, "%s, but %d of %d are unready, more than %.4g%% and more than %d: what is seen is not to be trusted",
		why, v.unready(), len(v.staying), 100*v.Pool.DistrustShare, v.Pool.DistrustCount)
}

// Distrusts tells whether so many of the workers are unready that what is seen of them is not to be trusted.
func (p Pool) Distrusts(unready, workers int) bool {
	return unready > p.DistrustCount && float64(unready) > p.DistrustShare*float64(workers)
}

// load says in a few words how the pool is.
func (v *view) load() string {
	dominant := v.recommendations[0]
	for _, o := range v.recommendations {
		if o.signal && o.Known && (!dominant.signal || !dominant.Known || o.Nodes > dominant.Nodes) {
			dominant = o
		}
	}
	return dominant.Reason
}
