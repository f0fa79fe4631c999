package report

import (
	"slices"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// nodesOf returns the Nodes of removals that are decided and in progress, without those that were restored.
func nodesOf(removals []state.Removal) []string {
	var out []string
	for _, r := range removals {
		switch r.State {
		case state.RemovalPlanned, state.RemovalTainted, state.RemovalDraining, state.RemovalDrained, state.RemovalTerminated:
			out = append(out, r.Node)
		}
	}
	return unique(out)
}

// terminatingOf returns the Nodes that are removed outside of actions: of reclaimed instances, of
// repairs, of instances that shut down, and of pending terminations, which are cancelled once their
// Node is Ready. The Node of an interruption may be known only from the snapshot.
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
	out := nodesOf(removals)
	for _, c := range cycle.Record.PendingTerminations {
		out = append(out, nodes[c.InstanceID])
	}
	return unique(out)
}

// candidatesOf returns the Nodes that would be removed next, without those that the decision itself began to remove.
func candidatesOf(targets []plan.Target, status *v1alpha1.WorkerPoolStatus) []string {
	var out []string
	for _, t := range targets {
		if a := status.Action; a != nil && slices.Contains(a.Nodes, t.Node) || slices.Contains(status.Terminating, t.Node) {
			continue
		}
		out = append(out, t.Node)
	}
	return unique(out)
}

// unique returns the names that are not empty, each once.
func unique(nodes []string) []string {
	var out []string
	for _, n := range nodes {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
