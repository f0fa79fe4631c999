package report

import (
	"slices"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// removedBy are the Nodes of removals that have been decided and are not over: their end is in the journal, whether they
// have been touched or not, and they have not been given back.
func removedBy(removals []state.Removal) []string {
	var out []string
	for _, r := range removals {
		switch r.State {
		case state.RemovalPlanned, state.RemovalTainted, state.RemovalDraining, state.RemovalDrained, state.RemovalTerminated:
			out = append(out, r.Node)
		}
	}
	return named(out)
}

// terminatingOf are the Nodes that go beside any action: of instances that the cloud takes back, of unhealthy ones that are being
// repaired, and of condemned ones, which are pardoned as soon as their Node is Ready. The Node of an interruption may be known to the snapshot alone.
func terminatingOf(cycle nodepool.CycleReport) []string {
	nodes := make(map[string]string, len(cycle.Snapshot.Instances))
	for w := range plan.Workers(cycle.Snapshot.Instances) {
		nodes[w.ID] = w.Node.Name
	}
	removals := slices.Concat(cycle.Record.Interruptions, cycle.Record.Repairs, cycle.Record.Endings)
	for i := range removals {
		if r := &removals[i]; r.Node == "" {
			r.Node = nodes[r.InstanceID]
		}
	}
	out := removedBy(removals)
	for _, c := range cycle.Record.PendingTerminations {
		out = append(out, nodes[c.InstanceID])
	}
	return named(out)
}

// candidatesOf are the Nodes that would go next. Those that were candidates of the decision and are being removed by now,
// by the action that it began, are no candidates any more.
func candidatesOf(targets []plan.Target, status *v1alpha1.WorkerPoolStatus) []string {
	var out []string
	for _, t := range targets {
		if a := status.Action; a != nil && slices.Contains(a.Nodes, t.Node) || slices.Contains(status.Terminating, t.Node) {
			continue
		}
		out = append(out, t.Node)
	}
	return named(out)
}

// named returns the names that there are, each once.
func named(nodes []string) []string {
	var out []string
	for _, n := range nodes {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
