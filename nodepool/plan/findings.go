package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// endsWithin is the longest time that a termination normally takes. Most instances take less than a
// minute, bare metal a quarter of an hour.
const endsWithin = 20 * time.Minute

// findings returns the problems that only people can solve.
func findings(f *facts, d Decision) (out []Finding) {
	drift := ""
	for k := range f.Instances {
		i := &f.Instances[k]
		drift = max(drift, i.OutdatedErr)
		out = append(out, findingsOf(i)...)
	}
	for _, x := range f.Foreign {
		out = append(out, Finding{NotOwned, "", x.InstanceID, fmt.Sprintf(
			"Instance %s has the tags of the pool and belongs to %s, so the pool ignores it: remove the tags of one of the two",
			x.InstanceID, x.Owner)})
	}
	if drift != "" {
		out = append(out, Finding{Kind: DriftUnknown, Message: "Which instances are outdated is unknown: " + drift})
	}
	if f.OffersErr != "" {
		out = append(out, Finding{Kind: OffersUnknown, Message: "What can be launched is unknown: " + f.OffersErr})
	}
	if f.PricesErr != "" {
		out = append(out, Finding{Kind: PricesUnknown, Message: "Some prices are unknown, and instance types without one " +
			"come last, smaller ones first: " + f.PricesErr})
	}
	if f.Pool.Deleting {
		return out
	}
	if d.RepairHeld != "" && !f.Pool.Repair.Disabled {
		out = append(out, Finding{Kind: RepairHeld, Message: "Unhealthy nodes are not repaired: " + d.RepairHeld})
	}
	return append(out, brokenWorkers(f, d)...)
}

// findingsOf returns the problems of an instance that only people can solve.
func findingsOf(i *Instance) (out []Finding) {
	add := func(kind FindingKind, node, format string, args ...any) {
		out = append(out, Finding{kind, node, i.ID, fmt.Sprintf(format, args...)})
	}
	name := cmp.Or(i.ID, i.ProviderID)
	switch {
	case i.Ambiguous != "":
		add(Ambiguous, i.Node.Name, "%s: neither %s nor its node is removed; delete the Node that runs elsewhere",
			strings.ToUpper(i.Ambiguous[:1])+i.Ambiguous[1:], name)
	case i.PossibleNode != "":
		add(Ambiguous, i.PossibleNode,
			"Node %s may run on %s, which is not terminated: set the provider id of its kubelet to %s",
			i.PossibleNode, name, i.ProviderID)
	}
	if i.Unlisted > 0 {
		add(Unlisted, i.Node.Name, "The cloud has not listed %s for %s, %s: neither the instance nor its node is removed",
			name, i.Unlisted.Round(time.Second), i.UnlistedWhy)
	}
	if i.Ending >= endsWithin {
		add(StillEnding, i.Node.Name,
			"The termination of %s was ordered %s ago and it still exists: its node stays until it is gone",
			i.ID, i.Ending.Round(time.Second))
	}
	return out
}

// brokenWorkers returns the workers whose Nodes have not been Ready for a long time and whose
// removal has not begun.
func brokenWorkers(f *facts, d Decision) (out []Finding) {
	for _, w := range f.workers {
		if w.BrokenFor == 0 || f.Record.PendingTermination(w.ID) != nil ||
			slices.ContainsFunc(d.Repairs, func(r NodeRepair) bool { return r.InstanceID == w.ID }) {
			continue
		}
		instead := "another may take its place"
		if !w.Failed {
			instead = "nothing takes its place, because several are in this state"
		}
		out = append(out, Finding{Broken, w.Node.Name, w.ID, fmt.Sprintf("Node %s has not been Ready for %s, and %s: %s",
			w.Node.Name, w.BrokenFor.Round(time.Second), instead, prognosis(f, d, w))})
	}
	return out
}

// prognosis returns what will happen to an unhealthy worker that is not being repaired yet.
func prognosis(f *facts, d Decision, w *Instance) string {
	due := w.Unhealthy.Due()
	switch {
	case !w.Unhealthy.Holds(), f.Pool.Repair.Disabled:
		return fmt.Sprintf("delete the Node or terminate %s if it is lost", w.ID)
	case d.RepairHeld != "":
		return "it is not repaired: " + d.RepairHeld
	case f.Now.Before(due):
		return "it is repaired at " + due.UTC().Format(time.RFC3339) + " unless it recovers"
	case f.backsOff(w):
		return "its drain or termination failed, and is retried at " +
			f.Record.DrainBackoff[w.ID].UTC().Format(time.RFC3339)
	}
	return "it is repaired once others have been"
}
