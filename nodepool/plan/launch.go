package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

// launchToFloor launches up to the floor, ignoring cooldowns and an open scale-down. If nothing else holds
// more back, it launches up to the recommendation.
func launchToFloor(f *facts, d Decision) (Decision, verdict) {
	floor, reason := floorOf(f)
	if len(f.staying) >= floor {
		return d, passes
	}
	why := fmt.Sprintf("the minimum is %d", f.Pool.Min)
	if f.withNotice > 0 {
		why = fmt.Sprintf("%s, and %d are needed", noticeText(f), floor)
	}
	target := floor
	if f.Record.ActionKind() == "" && coolsUp(f.census) <= 0 {
		target = max(floor, d.Recommended)
	}
	d.Desired = aim(f, target)
	if f.Record.ActionKind() != "" && f.Record.ActionKind() != state.ActionDown {
		return d.hold(ActionOpen, "a %s is open (%s)", f.Record.ActionKind(), why), decides
	}
	d.Urgent = true
	return launch(f, d, recommendation{cause: reason, Recommendation: Recommendation{Reason: why}}), decides
}

// extendScaleUp adds nodes that are recommended meanwhile to an open scale-up. A rise does not end with
// the request for its first nodes, and the next batch would come a whole launch later.
func extendScaleUp(f *facts, d Decision) (Decision, verdict) {
	existing := len(f.staying) + f.planned()
	if f.Record.ActionKind() != state.ActionUp || f.room <= 0 || f.Record.Failures != 0 || len(f.notices) > 0 ||
		min(d.Recommended, f.Pool.Max) <= existing {
		return d, passes
	}
	d.Desired = min(d.Recommended, f.Pool.Max, add(existing, min(f.room, batchUp(f))))
	dominant := f.recommended.dominant()
	d.Placements, d.Alternatives, d.Pinned = placementsFor(
		f, min(d.Desired-existing, places(f)-f.planned()), d.Recommended-existing, dominant)
	if len(d.Placements) == 0 {
		return d.hold(ActionOpen, "a %s is open, and what else could be launched is cooling after errors (%s)",
			f.Record.ActionKind(), dominant.Reason), decides
	}
	aim := d.Desired
	d.Desired = existing + len(d.Placements)
	d.Step, d.Reason = ScaleUp, dominant.cause
	d.Message = fmt.Sprintf("Launch %d more, next to %s, in the open scale-up: %s%s", len(d.Placements),
		count(existing, "worker"), dominant.Reason, limits(f, max(aim, d.Recommended), d.Desired))
	return d, decides
}

// launchRecommended launches up to the largest recommendation. If none of it can be launched, later rules may
// still act.
func launchRecommended(f *facts, d Decision) (Decision, verdict) {
	n := len(f.staying)
	if d.Recommended <= n {
		return d, passes
	}
	d.Desired = aim(f, d.Recommended)
	dominant := f.recommended.dominant()
	switch left := coolsUp(f.census); {
	case n >= f.Pool.Max:
		d = d.hold(AtMaximum, "%d are recommended and the maximum is %d (%s)", d.Recommended, f.Pool.Max, dominant.Reason)
	case left > 0:
		d = d.hold(CoolingDown, "%d are recommended, and the cooldown of scale-ups, %s, has %s left (%s)",
			d.Recommended, f.Pool.CooldownUp, short(left), dominant.Reason)
	default:
		d = launch(f, d, dominant)
	}
	if d.Step == Hold && f.recommended.attainable() <= n {
		return d, yields
	}
	return d, decides
}

// launch places the nodes up to d.Desired, unless launches fail or nothing can be launched.
func launch(f *facts, d Decision, r recommendation) Decision {
	urgent, why := d.Urgent, r.Reason
	d.Urgent = false
	if left := backsOffFor(f.census, urgent); left > 0 {
		return d.hold(BackingOff, "%d are recommended, and nothing joined in the last %s: the next is tried in %s (%s)",
			d.Desired, count(f.Record.Failures, "scale-up"), short(left), why)
	}
	n, room := len(f.staying), places(f)
	if len(f.Offers) == 0 {
		return d.hold(LaunchesUnknown, "%d are recommended, and what can be launched is unknown: %s (%s)",
			d.Desired, cmp.Or(f.OffersErr, "nothing is offered"), why)
	}
	d.GiveUp = kept(f, d.Desired-n-room)
	if room == 0 {
		return holdMaximumReached(f, d, why)
	}
	d.Placements, d.Alternatives, d.Pinned = placementsFor(f, min(d.Desired-n, room), max(d.Desired, d.Recommended)-n, r)
	if len(d.Placements) == 0 {
		return holdNoCapacity(f, d, why)
	}
	aim := d.Desired
	d.Desired = n + len(d.Placements)
	d.Step, d.Reason, d.Urgent = ScaleUp, r.cause, urgent
	d.Message = fmt.Sprintf("Launch %d next to %s: %s%s",
		len(d.Placements), count(n, "worker"), why, limits(f, max(aim, d.Recommended), d.Desired))
	return d
}

// holdNoCapacity holds because no launch would help. A node that helps no pod would be followed by
// another.
func holdNoCapacity(f *facts, d Decision, why string) Decision {
	if len(newPlacer(f.census).place(nil, 1, anything)) > 0 {
		return d.hold(InsufficientCapacity, "%d are recommended, and every kind of instance that the pending pods could "+
			"run on is cooling after errors (%s)", d.Desired, why)
	}
	return d.hold(InsufficientCapacity, "%d are recommended, and all %d kinds of instance that could be launched are "+
		"cooling after errors (%s)", d.Desired, len(f.Offers), why)
}

// holdMaximumReached holds because workers and failed instances reach the maximum. Without that limit failed
// instances would pile up until people look at them.
func holdMaximumReached(f *facts, d Decision, why string) Decision {
	failed := 0
	for _, w := range f.workers {
		if w.Failed && !w.Leaving {
			failed++
		}
	}
	if len(d.GiveUp) > 0 {
		return d.hold(InsufficientCapacity, "%d are recommended, and of %s that did not join some must be terminated "+
			"first, as the maximum is %d (%s)", d.Desired, count(failed, "instance"), f.Pool.Max, why)
	}
	return d.hold(InsufficientCapacity, "%d are recommended, and %s that did not join or are broken are kept, with which "+
		"the maximum of %d is reached: terminate some, or raise max (%s)",
		d.Desired, count(failed, "instance"), f.Pool.Max, why)
}

// placementsFor places up to n of the nodes of a recommendation: first those that need a shape for
// pods to fit, then those of any shape. A node of the wrong shape would not help: if a shape cannot
// be launched and the recommendation includes it, nothing is launched in its place.
func placementsFor(
	f *facts, n, asked int, r recommendation,
) (out []fleet.Placement, alternatives [][]string, pinned int) {
	shapes := f.Pending.Shapes
	switch r.cause {
	case PodsPending:
	case Interrupted, Unhealthy:
		shapes = slices.Concat(shapes, f.Pending.Replacing, f.Pending.Later)
	default:
		shapes = slices.Concat(shapes, f.Pending.Later)
	}
	p := newPlacer(f.census)
	for _, s := range shapes {
		placed := len(out)
		out = p.place(out, min(n, placed+s.Nodes), s.Takes)
		alternatives = p.alternativesOf(alternatives, out, s.Takes)
		if r.pods {
			asked -= s.Nodes
		} else {
			asked -= len(out) - placed
		}
	}
	pinned = len(out)
	out = p.place(out, min(n, pinned+max(0, asked)), anything)
	return out, p.alternativesOf(alternatives, out, anything), pinned
}

// floorOf returns the number of workers below which launches ignore cooldowns, with the reason: the
// minimum, and workers with a notice as far as they are needed. Without a forecast all of them are.
func floorOf(f *facts) (int, Reason) {
	total := len(f.staying) + f.withNotice
	needed, signals := 0, 0
	for _, r := range f.recommended {
		needed = max(needed, r.Nodes)
		if r.signal {
			signals++
			if !r.Known {
				needed = math.MaxInt
			}
		}
	}
	if signals == 0 {
		needed = math.MaxInt
	}
	reason := Interrupted
	switch {
	case total < f.Pool.Min:
		reason = BelowMinimum
	case f.underRepair > 0 && f.underRepair == f.withNotice:
		reason = Unhealthy
	}
	return min(max(f.Pool.Min, min(total, needed)), f.Pool.Max), reason
}

// noticeText returns why workers must be replaced.
func noticeText(f *facts) string {
	switch n := f.underRepair; {
	case n == f.withNotice:
		return count(n, "unhealthy worker") + " repaired"
	case n > 0:
		return fmt.Sprintf("the cloud reclaims %s and %s repaired", count(f.withNotice-n, "worker"),
			count(n, "unhealthy worker"))
	}
	return "the cloud reclaims " + count(f.withNotice, "worker")
}

// aim returns the next number of workers on the way to a recommended one.
func aim(f *facts, recommended int) int {
	n := len(f.staying)
	return max(n, min(recommended, f.Pool.Max, add(n, batchUp(f))))
}

// batchUp returns the largest number of nodes that may be launched now. While launches fail it is
// one, which is enough to detect recovery.
func batchUp(f *facts) int {
	if f.Record.Failures > 0 {
		return 1
	}
	return f.Pool.MaxBatchUp
}

// places returns the number of instances that the maximum still allows. An instance that did not
// join takes a place until it is gone, and so do broken ones, except one in ten, which are replaced
// at once. An instance that leaves or is reclaimed takes none.
func places(f *facts) int {
	failed, broken := 0, 0
	for _, w := range f.workers {
		switch {
		case w.Leaving || !w.Failed:
		case w.Broken:
			broken++
		default:
			failed++
		}
	}
	return max(0, f.Pool.Max-len(f.staying)-failed-max(0, broken-max(1, f.Pool.Max/10)))
}

// kept returns up to n instances that did not join and are kept for inspection, oldest first.
func kept(f *facts, n int) []string {
	var out []string
	for _, w := range f.workers {
		if w.Kept && !w.Leaving && len(out) < n {
			out = append(out, w.ID)
		}
	}
	return out
}

// limits returns why fewer nodes are launched than recommended, as the end of a sentence.
func limits(f *facts, recommended, desired int) string {
	if recommended <= desired {
		return ""
	}
	switch {
	case desired == f.Pool.Max:
		return fmt.Sprintf("; %d are recommended and the maximum is %d", recommended, f.Pool.Max)
	case f.Record.Failures > 0:
		return fmt.Sprintf("; %d are recommended, and one is tried while launches fail", recommended)
	}
	return fmt.Sprintf("; %d are recommended, and one step goes to %d", recommended, desired)
}
