package nodepool

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var errNotObserved = errors.New("the cluster has not been observed")

// Deletion is the remaining part of a pool that is being deleted.
type Deletion struct {
	Err       string   // why that is unknown, "" if it is known
	Nodes     int      // to be drained, or to be deleted after their instances
	Instances int      // that have no Node
	Held      []string // what blocks some of them, such as "node-a: the pod shop/cart is annotated …"
}

// deletion returns what is left of a pool after a cycle, nil if it is not being deleted.
func deletion(o *observe.Observation, r state.Record, d plan.Decision) *Deletion {
	if !o.Spec.Plan.Deleting {
		return nil
	}
	out := &Deletion{}
	if !o.Complete() {
		out.Err = cmp.Or(o.Err(), errNotObserved).Error()
		return out
	}
	nodes, instances := o.Left()
	out.Nodes, out.Instances = len(nodes), len(instances)
	out.Held = held(o, r, d, instances)
	if doubt := plan.Doubt(o.Spec.Plan, o.Members, r.PendingTerminations); doubt != "" && len(instances) > 0 {
		out.Held = slices.Insert(out.Held, 0, doubt+
			"; terminate those without a node yourself, or set deletionPolicy to Orphan to leave them")
	}
	return out
}

// held returns why some of the remaining nodes and instances stay, sorted.
func held(o *observe.Observation, r state.Record, d plan.Decision, instances []string) (out []string) {
	for _, r := range d.Refused {
		out = append(out, r.Worker+": "+r.Reason)
	}
	if a := r.Action; a != nil {
		for _, r := range a.Targets {
			if r.Error != "" && !r.Done() {
				out = append(out, cmp.Or(r.Node, r.InstanceID)+": "+r.Error)
			}
		}
	}
	for _, f := range d.Upkeep.Findings {
		name := cmp.Or(f.Node, f.InstanceID) + ": "
		known := slices.ContainsFunc(out, func(h string) bool { return strings.HasPrefix(h, name) })
		switch f.Kind {
		case plan.Ambiguous, plan.StillEnding, plan.Unlisted:
			if !known {
				out = append(out, name+f.Message)
			}
		}
	}
	for _, id := range instances {
		if i := o.Known[id].Instance; i.Action == "" && i.State != fleet.Leaving {
			out = append(out, id+": it has no Node, and Foresail did not launch it: terminate it, or remove its tags")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
