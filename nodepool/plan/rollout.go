package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rollOut replaces outdated workers, as many at once as the budget allows. Those that the load does
// not need are removed if their pods fit elsewhere; for the others a replacement is launched first.
// Neither waits for a cooldown or for the pool to be idle. If the rule passes, Rollout.Message says
// why, and Refused has the workers whose pods fit nowhere else.
func rollOut(f *facts, d Decision) (Decision, verdict) {
	all := outdated(f)
	if len(all) == 0 {
		return d, passes
	}
	most, why := disruptable(f.census)
	if most <= 0 {
		return rolloutHeld(d, why), passes
	}
	all, why = removable(f, all)
	if len(all) == 0 {
		return rolloutHeld(d, why), passes
	}
	p := newPicker(f, nil)
	p.pick(all, min(most, f.ready-neededReady(f), MaxBatch))
	if len(p.chosen) > 0 {
		d.Step, d.Reason, d.Targets, d.Desired = ScaleDown, Outdated, p.targets(), d.Workers-len(p.chosen)
		d.Message = fmt.Sprintf("Remove %d of %s as outdated: %s", len(p.chosen), count(d.Workers, "worker"), all[0].Outdated)
		return d, decides
	}
	d.Refused = p.unmovable
	return launchReplacements(f, d, all, most)
}

// launchReplacements launches replacements for workers that could be removed then, each in the zone of its
// worker if possible. Later decisions remove the workers. Replacements that were launched earlier
// count, unless they turned out to be of no use.
func launchReplacements(f *facts, d Decision, list []*Instance, most int) (Decision, verdict) {
	n, room := len(f.staying), places(f)
	if left := backsOffFor(f.census, false); left > 0 {
		return rolloutHeld(d, fmt.Sprintf("launches fail, and the next is tried in %s", short(left))), passes
	}
	if room == 0 {
		return rolloutHeld(d, fmt.Sprintf("a new worker must come first, and the maximum of %d leaves no place for it: "+
			"raise max by one", f.Pool.Max)), passes
	}
	if began := f.Record.WorkersBeforeRollout; began > 0 {
		most -= max(0, n-began)
	}
	if most <= 0 {
		return rolloutHeld(d, "as many as the budget allows have been launched in their place"), passes
	}
	p := newPicker(f, newPlacer(f.census))
	p.pick(list, min(most, room, batchUp(f)))
	if p.asked > 0 {
		d.Refused = p.unmovable
	}
	switch {
	case len(p.chosen) > 0:
	case p.cooling:
		return rolloutHeld(d, "every kind of instance that could be launched is cooling after errors"), passes
	default:
		return rolloutHeld(d, p.why), passes
	}
	d.Placements = p.launched
	d.Desired = n + len(d.Placements)
	d.Step, d.Reason = ScaleUp, Outdated
	d.Message = fmt.Sprintf("Launch %d next to %s, of which %d are needed, to replace outdated ones: %s",
		len(d.Placements), count(n, "worker"), neededReady(f), list[0].Outdated)
	return d, decides
}

// rolloutHeld records why no outdated worker is replaced.
func rolloutHeld(d Decision, why string) Decision {
	d.Rollout.Message = why
	return d
}

// outdated returns the workers to be replaced.
func outdated(f *facts) []*Instance {
	out := slices.DeleteFunc(slices.Clone(f.staying), func(w *Instance) bool { return w.Outdated == "" })
	slices.SortFunc(out, func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// removable returns the workers that can be removed, in the order of their removal. If there are
// none, it returns why.
func removable(f *facts, list []*Instance) (out []*Instance, why string) {
	for _, w := range list {
		if refused := refusal(f.census, w, MustGo(Outdated)); refused == "" {
			out = append(out, w)
		} else if why == "" {
			why = fmt.Sprintf("no worker can be removed, such as %s: %s", w.name(), refused)
		}
	}
	slices.SortFunc(out, removalOrder(f.Pool, newSpread(f.Snapshot, f.staying)))
	return out, why
}

// replacing returns the number of workers without those that were launched as replacements. It
// starts with the first replacement, and rises with the needs of load and pods beyond that: a
// signal's recommendation is for all workers.
func replacing(f *facts, d Decision) int {
	existing, began := len(f.staying)+f.withNotice, f.Record.WorkersBeforeRollout
	launchedFor := Reason("")
	if d.Step == ScaleUp {
		launchedFor = d.Reason
	}
	switch {
	case began == 0 && launchedFor == Outdated:
		return existing
	case began == 0:
		return 0
	case launchedFor == LoadPredicted:
		return d.Desired
	case slices.Contains([]Reason{PodsPending, LoadReturns, SeasonalFloor}, launchedFor):
		return began + len(d.Placements)
	case f.Record.ActionKind() != "", f.WorkersErr != "":
		return began
	case len(outdated(f)) == 0:
		return 0
	}
	return min(began, existing)
}

// progress returns the progress of the replacement. A worker that is being removed counts until it
// is gone.
func progress(f *facts, d Decision) Rollout {
	out, leaving, unknown := countOutdated(f)
	var parts []string
	switch held := d.Rollout.Message; {
	case out.Outdated == 0:
	case d.Reason == Outdated:
		parts = append(parts, d.Message)
	case held != "":
		parts = append(parts, held)
	case leaving > 0:
		parts = append(parts, "being drained or terminated: "+count(leaving, "worker"))
	default:
		parts = append(parts, "waits for something else: "+d.Message)
	}
	if out.Unknown > 0 {
		parts = append(parts, "whether "+count(out.Unknown, "worker")+" must be replaced is unknown: "+unknown)
	}
	out.Message = strings.Join(parts, "; ")
	return out
}

// countOutdated counts the outdated workers, those of them that leave, and those for which it is
// unknown, with the reason.
func countOutdated(f *facts) (out Rollout, leaving int, unknown string) {
	for _, w := range f.workers {
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
	return out, leaving, unknown
}
