package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// clearAfter is for how long no target of a scale-down may be done: what is not terminated by then is given back. The seed
	// document on scale-down, phase 5, counts from its begin, which no removal of hundreds would live to see the end of.
	clearAfter = 15 * time.Minute
	// dropAfter is when it is forgotten even if giving nodes back fails; their marks are found later.
	dropAfter = 20 * time.Minute
	// drainsAtOnce is how many nodes of a scale-down are emptied at the same time at most.
	drainsAtOnce = 10
)

// advanceDown drains and terminates the targets, several at once. It waits while the world is not to be trusted, gives up
// what can be given up when nodes are needed after all, and ends when no target is open.
func (t *cycle) advanceDown(ctx context.Context) error {
	if why := t.notAnyMore(t.record.Action); why != "" {
		if err := t.abandon(ctx, why); err != nil {
			return err
		}
	}
	if deletes(t.record.Action) {
		if err := t.taintAll(ctx); err != nil {
			return err
		}
	}
	open, emptied := 0, 0
	var errs []error
	for i := range t.record.Action.Targets {
		r := t.record.Action.Targets[i]
		if r.State == state.RemovalDrained || r.State == state.RemovalTerminated || r.State == state.RemovalCompleted {
			emptied++
		}
		if done(r) {
			continue
		}
		if t.waits(r) || queued(t.record.Action, r) && !t.begins(open, emptied) {
			continue
		}
		err := t.advanceTarget(ctx, i)
		if errors.Is(err, errStop) || errors.Is(err, errLeaseLost) || ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
		switch t.record.Action.Targets[i].State {
		case state.RemovalTainted, state.RemovalDraining:
			open++
		}
	}
	err := errors.Join(errs...)
	switch a := t.record.Action; {
	case !slices.ContainsFunc(a.Targets, func(r state.Removal) bool { return !done(r) }):
		return errors.Join(err, t.finishDown(ctx, false))
	case err != nil && t.age(a) > dropAfter:
		t.errs = append(t.errs, err)
		return t.finishDown(ctx, true)
	}
	return err
}

// begins tells whether another node is emptied beside those that are being: one at first, and two more with each that is
// empty. While a budget holds pods of one, none is: it would take no more pods, and its own might wait for the same budget.
func (t *cycle) begins(open, emptied int) bool {
	return open < min(1+2*emptied, drainsAtOnce) && !t.budgeted && !t.mustEnd()
}

func (t *cycle) advanceTarget(ctx context.Context, i int) error {
	a := t.record.Action
	if a.Targets[i].State == state.RemovalPlanned {
		if why := t.needs(i); why != "" {
			if err := t.drop(ctx, i, why); err != nil {
				return err
			}
		}
	}
	return t.removal(i).advance(ctx)
}

// removal is the removal of a target of the open scale-down.
func (t *cycle) removal(at int) removing {
	return removing{cycle: t, action: t.record.Action.ID, find: func() *state.Removal { return &t.record.Action.Targets[at] }}
}

// notAnyMore tells why an open scale-down must not go on, "" if it may.
func (t *cycle) notAnyMore(a *state.Action) string {
	switch d := t.decision; {
	case t.age(a) > clearAfter:
		return fmt.Sprintf("no node has gone in %s", clearAfter)
	case (a.Reason == plan.Outdated || a.Reason == plan.Underutilized) && t.seen.spec.Disruption.Paused:
		return "disruption is paused"
	case deletes(a) && !t.seen.spec.Plan.Deleting:
		return "the WorkerPool is not being deleted any more"
	case a.ID == t.snapshot.State.ActionID && d.Want > d.Workers:
		return "more workers are desired: " + d.Message
	}
	return ""
}

// abandon gives back every target that is not drained yet. What is drained is finished, unless its time is over.
func (t *cycle) abandon(ctx context.Context, why string) error {
	a := t.record.Action
	old := t.age(a) > clearAfter
	changed := false
	for i := range a.Targets {
		r := &a.Targets[i]
		touched := !queued(a, *r)
		switch {
		case r.State == state.RemovalPlanned, r.State == state.RemovalTainted, r.State == state.RemovalDraining,
			r.State == state.RemovalDrained && old:
			r.State, r.Since, r.Error, changed = state.RemovalRestoring, t.now(), why, true
			if touched && old {
				t.spare(r.InstanceID, spareMax)
			}
		}
	}
	if !changed {
		return nil
	}
	t.event(Event{Reason: EventScaleDownAborted, Warning: old, Action: a.ID, Message: "The scale-down is given up: " + why})
	return t.save(ctx)
}

// waits tells whether a target stays as it is while too little is known, or too much of the world looks broken, for
// anything to be removed. Giving nodes back does not wait.
func (t *cycle) waits(r state.Removal) bool {
	switch r.State {
	case state.RemovalRestoring, state.RemovalTerminated:
		return false
	}
	return !t.seen.complete() || t.distrusted()
}

// distrusted tells whether so many workers are unready that what is seen is not to be trusted.
func (t *cycle) distrusted() bool {
	unready, workers := 0, 0
	for _, w := range t.snapshot.Workers {
		if w.Counts() || t.stillWorks(w) {
			workers++
			if !w.Ready && !w.Cordoned {
				unready++
			}
		}
	}
	return t.seen.spec.Plan.Distrusts(unready, workers)
}

// needs tells why a target that has not been touched is needed after all, "" if it is not. In the cycle that has chosen it,
// nothing is asked again.
func (t *cycle) needs(at int) string {
	a := t.record.Action
	if a.ID != t.snapshot.State.ActionID || deletes(a) {
		return ""
	}
	var later []string
	for _, r := range a.Targets[at+1:] {
		if r.State == state.RemovalPlanned {
			later = append(later, r.InstanceID)
		}
	}
	return plan.Objection(t.snapshot, a.Reason, a.Targets[at].InstanceID, later)
}

// pinned tells why the pods of a node could not run on others, "" if they could, or if the pool is being deleted. Nodes that are
// being removed are no homes.
func (t *cycle) pinned(node string) string {
	if t.snapshot.Homes == nil || node == "" || t.seen.spec.Plan.Deleting {
		return ""
	}
	leaving := []string{node}
	if a := t.record.Action; a != nil {
		for _, r := range a.Targets {
			if r.Node != node && (r.State == state.RemovalTainted || r.State == state.RemovalDraining) {
				leaving = append(leaving, r.Node)
			}
		}
	}
	slices.Sort(leaving) // for all of them it is asked once
	return t.snapshot.Homes.Without(leaving)
}

// drop leaves out a target that has not been touched.
func (t *cycle) drop(ctx context.Context, at int, why string) error {
	r := &t.record.Action.Targets[at]
	r.State, r.Since, r.Error = state.RemovalRestoring, t.now(), why
	t.event(Event{
		Reason: EventScaleDownAborted, Instance: r.InstanceID, Node: r.Node, Action: t.record.Action.ID,
		Message: fmt.Sprintf("Node %s stays: %s", r.Node, why),
	})
	return t.save(ctx)
}

// finishDown ends the scale-down. Its cooldown begins if anything was removed.
func (t *cycle) finishDown(ctx context.Context, cleared bool) error {
	a := t.record.Action
	removed, failed := 0, ""
	for _, r := range a.Targets {
		if r.State == state.RemovalCompleted || r.State == state.RemovalTerminated {
			removed++
		} else {
			failed = r.Error
		}
	}
	switch {
	case removed == 0:
	case a.Reason == plan.Outdated:
		t.record.LastSwap = t.now()
	default:
		t.record.LastDown = t.now()
	}
	t.event(Event{
		Reason: EventScaledDown, Warning: cleared, Action: a.ID,
		Message: fmt.Sprintf("Removed %d of %d nodes%s", removed, len(a.Targets), because(failed)),
	})
	t.record.Action = nil
	return t.save(ctx)
}
