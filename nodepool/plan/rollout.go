package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rollOut replaces outdated workers, as many at once as the budget allows: those that the load does not need go as they
// are, if their pods have a home; of others the replacement is launched first. Neither waits for a cooldown, nor for the
// pool to be idle. It holds if nothing is to be done now.
func (v *view) rollOut(d Decision) Decision {
	outdated := v.outdated()
	if len(outdated) == 0 {
		return d
	}
	most, why := v.disruptable()
	if most <= 0 {
		return v.keep(d, why)
	}
	outdated, why = v.removable(outdated)
	if len(outdated) == 0 {
		return v.keep(d, why)
	}
	spare := v.ready() - v.wanted()
	targets, homeless := v.housed(outdated, min(most, spare))
	if len(targets) > 0 {
		d.Step, d.Reason, d.Targets, d.Want = ScaleDown, Outdated, targets, d.Workers-len(targets)
		d.Message = fmt.Sprintf("Remove %d of %s as outdated: %s", len(targets), count(d.Workers, "worker"), outdated[0].Outdated)
		return d
	}
	v.homeless = homeless
	return v.surge(d, outdated, most)
}

// paused is why nothing is disrupted.
const paused = "disruption is paused"

// keep leaves a decision as it is, and notes why no outdated worker is replaced.
func (v *view) keep(d Decision, why string) Decision {
	v.held = why
	return d
}

// outdated returns the workers that are to be replaced.
func (v *view) outdated() []Worker {
	out := slices.DeleteFunc(slices.Clone(v.staying), func(w Worker) bool { return w.Outdated == "" })
	slices.SortFunc(out, func(a, b Worker) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
	return out
}

// wanted is how many ready workers there must be while others are replaced. A signal asks for as many as it needs and not, as
// of a removal for good, for a margin: or what is launched in place of others would be part of what must stay.
func (v *view) wanted() int {
	most := v.Pool.Min
	for _, s := range v.Signals {
		if !s.InformsOnly {
			most = max(most, s.Needs)
		}
	}
	for _, r := range v.recommendations {
		if !r.signal && r.Known {
			most = max(most, r.attainable())
		}
	}
	return most
}

// needed tells why an outdated worker that is being removed must stay, "" if it need not. Those whose turn comes later are not
// disrupted yet.
func (v *view) needed(later []string) string {
	if v.Disruption.Paused {
		return paused
	}
	if why := v.overBudget(later); why != "" {
		return why
	}
	if v.ready() < v.wanted() {
		return fmt.Sprintf("%d ready workers are needed, and without it there are %d", v.wanted(), v.ready())
	}
	return ""
}

// overBudget tells why the budgets do not allow what leaves by now, "" if they do.
func (v *view) overBudget(later []string) string {
	if gone := v.disrupted(later); gone > v.Disruption.Nodes {
		return fmt.Sprintf("%s, and with it %s would be out of service", v.Disruption.Why, count(gone, "worker"))
	}
	return ""
}

// disrupted is how many workers are not ready, leave or are taken back, but for some. What did not join has never been one of them.
func (v *view) disrupted(but []string) int {
	gone := v.unready()
	for _, w := range v.Workers {
		switch {
		case w.Ended || w.Failed && !w.Broken || slices.Contains(but, w.InstanceID):
		case w.Leaving || w.Broken || v.noticed[w.InstanceID]:
			gone++
		}
	}
	return gone
}

// disruptable tells how many workers may be disrupted now, and why not more.
func (v *view) disruptable() (int, string) {
	gone := v.disrupted(nil)
	switch u := v.unknown(); {
	case v.Disruption.Paused:
		return 0, paused
	case len(u) > 0:
		return 0, "nothing is disrupted while this is not known: " + u[0]
	case v.Pending.any():
		return 0, "nothing is disrupted while pods are unschedulable"
	case v.Pool.Distrusts(v.unready(), len(v.staying)):
		return 0, "too many workers are unready"
	case gone > 0:
		return v.Disruption.Nodes - gone, fmt.Sprintf("%s, and %d are not ready or leave already", v.Disruption.Why, gone)
	}
	return v.Disruption.Nodes, v.Disruption.Why
}

// removable leaves out the workers that cannot be removed, and orders the others. If none is left it tells why.
func (v *view) removable(list []Worker) (out []Worker, why string) {
	for _, w := range list {
		if refused := v.refusal(w, Outdated.MustGo()); refused == "" {
			out = append(out, w)
		} else if why == "" {
			why = fmt.Sprintf("none may go, such as %s: %s", cmp.Or(w.Node, w.InstanceID), refused)
		}
	}
	f := newSpread(v.Snapshot, v.staying)
	slices.SortFunc(out, func(a, b Worker) int { return v.order(a, b, f) })
	return out, why
}

// housed returns up to most workers whose pods have a home on the others, and those whose pods have none.
func (v *view) housed(list []Worker, most int) ([]Target, []Refusal) {
	p := picker{view: v, staying: newSpread(v.Snapshot, v.staying)}
	p.pick(list, min(most, MaxBatch))
	return targetsOf(p.chosen), p.homeless
}

// surge launches what replaces workers, if these could go then: each in the zone of its worker, if that can be. The next
// decisions remove the workers. Those that have been launched so and are there still count, unless they are of no use.
func (v *view) surge(d Decision, list []Worker, most int) Decision {
	n := len(v.staying)
	if left := v.backsOffFor(false); left > 0 {
		return v.keep(d, fmt.Sprintf("launches fail, and the next is tried in %s", short(left)))
	}
	if v.places() == 0 {
		return v.keep(d, fmt.Sprintf("a new worker must come first, and the maximum of %d leaves no place for it: raise max by one", v.Pool.Max))
	}
	if before := v.State.Replacing; before > 0 {
		most -= max(0, n-before)
	}
	if most <= 0 {
		return v.keep(d, "as many as the budget allows have been launched in their place")
	}
	p := picker{view: v, staying: newSpread(v.Snapshot, v.staying), placer: newPlacer(v.Snapshot, nil)}
	p.pick(list, min(most, v.places(), v.batchUp()))
	if p.asked > 0 {
		v.homeless = p.homeless
	}
	switch {
	case len(p.chosen) > 0:
	case p.cooling:
		return v.keep(d, "every kind of instance that could be launched is cooling after errors")
	default:
		return v.keep(d, p.why)
	}
	d.Placements = p.launched
	d.Want = n + len(d.Placements)
	d.Step, d.Reason = ScaleUp, Outdated
	d.Message = fmt.Sprintf("Launch %d beside %s, of which %d are needed, in place of outdated ones: %s", len(d.Placements), count(n, "worker"), v.wanted(), list[0].Outdated)
	return d
}

// replacing is how many workers there would be without those that were launched in place of others. It begins with the first of
// these, and rises with what load and pods need beyond them: what a signal recommends is beside all that there are.
func (v *view) replacing(d Decision) int {
	there, before := len(v.staying)+v.taken, v.State.Replacing
	up := d.Step == ScaleUp
	switch {
	case before == 0 && up && d.Reason == Outdated:
		return there
	case before == 0:
		return 0
	case up && d.Reason == LoadPredicted:
		return d.Want
	case up && (d.Reason == PodsPending || d.Reason == LoadReturns || d.Reason == SeasonalFloor):
		return before + len(d.Placements)
	case v.State.Action != "", v.WorkersErr != "":
		return before
	case len(v.outdated()) == 0:
		return 0
	}
	return min(before, there)
}

// rollout returns how far the replacement is. A worker that is being removed counts until it is gone.
func (v *view) rollout(d Decision) Rollout {
	out, leaving, unknown := Rollout{}, 0, ""
	for _, w := range v.Workers {
		switch {
		case w.Failed || w.Ended:
		case w.Outdated != "":
			out.Outdated++
			if w.Leaving {
				leaving++
			}
		case w.OutdatedErr != "" && !w.Leaving:
			out.Unknown++
			unknown = max(unknown, w.OutdatedErr)
		}
	}
	var parts []string
	switch {
	case out.Outdated == 0:
	case d.Reason == Outdated:
		parts = append(parts, d.Message)
	case v.held != "":
		parts = append(parts, v.held)
	case leaving > 0:
		parts = append(parts, "being drained or terminated: "+count(leaving, "worker"))
	default:
		parts = append(parts, "waits for something else: "+d.Message)
	}
	if out.Unknown > 0 {
		parts = append(parts, "whether "+count(out.Unknown, "worker")+" must be replaced is not known: "+unknown)
	}
	out.Message = strings.Join(parts, "; ")
	return out
}
