package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var errNotObserved = errors.New("the cluster has not been observed")

// Deletion is what is left of a pool that is being deleted.
type Deletion struct {
	Err       string   // why that is not known, "" if it is
	Nodes     int      // that are to be drained, or deleted after their instances
	Instances int      // that have no Node
	Held      []string // what holds some of them, such as "node-a: the pod shop/cart is annotated …"
}

// deletion returns what is left of a pool after a cycle, nil if it is not being deleted.
func deletion(o *observation, r state.Record, d plan.Decision) *Deletion {
	if !o.spec.Plan.Deleting {
		return nil
	}
	out := &Deletion{}
	if !o.complete() {
		out.Err = cmp.Or(o.err(), errNotObserved).Error()
		return out
	}
	nodes, instances := o.left()
	out.Nodes, out.Instances = len(nodes), len(instances)
	out.Held = o.held(r, d, instances)
	if doubt := plan.Doubt(o.spec.Plan, o.facts, pendingTerminations(r)); doubt != "" && len(instances) > 0 {
		out.Held = slices.Insert(out.Held, 0, doubt+"; terminate those without a node yourself, or set deletionPolicy to Orphan to leave them")
	}
	return out
}

// held returns why some of what is left of a pool stays, in order.
func (o *observation) held(r state.Record, d plan.Decision, instances []string) (held []string) {
	for _, r := range d.Refused {
		held = append(held, r.Worker+": "+r.Reason)
	}
	if a := r.Action; a != nil {
		for _, r := range a.Targets {
			if r.Error != "" && !r.Done() {
				held = append(held, cmp.Or(r.Node, r.InstanceID)+": "+r.Error)
			}
		}
	}
	for _, f := range d.Upkeep.Findings {
		name := cmp.Or(f.Node, f.InstanceID) + ": "
		known := slices.ContainsFunc(held, func(h string) bool { return strings.HasPrefix(h, name) })
		switch f.Kind {
		case plan.Ambiguous, plan.StillEnding, plan.Unlisted:
			if !known {
				held = append(held, name+f.Message)
			}
		}
	}
	for _, id := range instances {
		if i := o.known[id].instance; i.Action == "" && i.State != fleet.Leaving {
			held = append(held, id+": it has no Node, and Foresail did not launch it: terminate it, or remove its tags")
		}
	}
	slices.Sort(held)
	return slices.Compact(held)
}

// endUp ends the scale-up of a pool that is being deleted: what is not launched yet never is, and what has not joined is
// pending termination. A launch whose answer was lost is found by its tags.
func (e *executor) endUp(ctx context.Context) error {
	a := e.record.Action
	launched := 0
	for _, s := range a.Slots {
		if s.State != state.SlotLaunched {
			continue
		}
		launched++
		if e.record.PendingTermination(s.InstanceID) == nil {
			e.record.PendingTerminations = append(e.record.PendingTerminations, state.PendingTermination{InstanceID: s.InstanceID, Reason: plan.TerminateDeleted, Since: e.seen.at, Due: e.seen.at})
		}
	}
	e.event(Event{Reason: EventScaleUpAborted, Action: a.ID, Message: fmt.Sprintf("The scale-up is given up, as the WorkerPool is being deleted; %d instances have not joined", launched)})
	e.record.Action = nil
	return e.save(ctx)
}

// taintAll taints every node of a deletion before the first is drained, so that what is evicted from one does not come to
// the next.
func (e *executor) taintAll(ctx context.Context) error {
	var planned []int
	for i, r := range e.record.Action.Targets {
		if r.State == state.RemovalPlanned && !e.waits(r) {
			planned = append(planned, i)
		}
	}
	for part := range slices.Chunk(planned, 5*maxCalls) {
		if e.mustEnd() {
			return nil
		}
		err := e.each(ctx, len(part), func(i int) error { return e.removal(part[i]).step(ctx) })
		if err := e.carryOn(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// age is for how long a scale-down has been open, or since the last of its targets was done: it may have hundreds.
func (e *executor) age(a *state.Action) time.Duration {
	since := a.Started
	for _, r := range a.Targets {
		if r.Done() {
			since = latest(since, r.Since)
		}
	}
	return e.now().Sub(since)
}

// stillWorks tells whether a worker is the target of a deletion whose turn has not come, or that is being drained.
func (e *executor) stillWorks(w plan.Worker) bool {
	if e.record.Action == nil || !e.record.Action.DeletesPool() || w.Failed {
		return false
	}
	r := e.record.Target(w.InstanceID)
	return r != nil && (r.State == state.RemovalPlanned || r.State == state.RemovalTainted || r.State == state.RemovalDraining)
}
