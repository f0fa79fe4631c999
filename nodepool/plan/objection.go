package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Objection returns why a worker that is being removed must stay after all, "" if it need not:
// something is unknown, the pool is no longer idle or would not carry its load, the worker is the
// last of its kind, or its pods would fit on no other node. The snapshot must mark workers that are
// being removed, including this one, as Leaving; later are those that are removed after it.
func Objection(s Snapshot, reason Reason, worker string, later []string) string {
	f, _ := prepare(s)
	if why := objection(f, reason, later); why != "" {
		return why
	}
	it := &Instance{}
	rest := slices.Clip(f.staying)
	for _, w := range f.workers {
		switch {
		case w.ID == worker:
			it = w
			rest = append(rest, w)
		case slices.Contains(later, w.ID):
			rest = append(rest, w)
		}
	}
	if reason == Outdated && it.Outdated == "" {
		return "it is not outdated any more"
	}
	if it.FutileRemoval != "" && !MustGo(reason) {
		return it.FutileRemoval
	}
	if why := newSpread(f.Snapshot, rest).mustStay(it); why != "" || it.Node.Name == "" || f.Simulator == nil {
		return why
	}
	return f.Simulator.Without([]string{it.Node.Name}, MustGo(reason))
}

// objection returns why no worker may be removed for a reason.
func objection(f *facts, reason Reason, later []string) string {
	switch {
	case len(f.unknown) > 0:
		return "this is unknown: " + strings.Join(f.unknown, ", ")
	case reason == Outdated:
		return objectionToRollout(f, later)
	case reason == Underutilized && !consolidates(f.census):
		return "the pool no longer consolidates"
	case reason == Underutilized && f.Disruption.Paused:
		return paused
	case MustGo(reason):
		return ""
	}
	return objectionToSaving(f, reason, later)
}

// objectionToSaving returns why a worker that is removed to save money must stay, "" if it need
// not.
func objectionToSaving(f *facts, reason Reason, later []string) string {
	switch over := overBudget(f.census, later); {
	case over != "":
		return over
	case reason == Underutilized && f.Pending.any():
		return count(f.Pending.Pods, "pod") + " unschedulable"
	case reason == Underutilized:
	case f.idle.unknown != "":
		return "this is unknown: " + f.idle.unknown
	case f.idle.busy != "":
		return f.idle.busy
	}
	if extra, why := spare(f); extra < 0 {
		return why
	}
	return ""
}

// objectionToRollout returns why an outdated worker that is being removed must stay, "" if it need
// not. Those in later are not disrupted yet.
func objectionToRollout(f *facts, later []string) string {
	if f.Disruption.Paused {
		return paused
	}
	if why := overBudget(f.census, later); why != "" {
		return why
	}
	if needed := neededReady(f); f.ready < needed {
		return fmt.Sprintf("%d ready workers are needed, and without it there are %d", needed, f.ready)
	}
	return ""
}
