package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// ClearAfter is the least time without a target done after which a scale-down is given up: what is not
	// terminated by then is given back. See [executor.clearAfter].
	ClearAfter = 15 * time.Minute
	// clearMargin is what a target may take in addition to drain.timeout: pods that are binding, pods that end,
	// volumes, its instance.
	clearMargin = 10 * time.Minute
	// DropMargin is how much later a scale-down is forgotten even if giving nodes back fails; their marks are found
	// later.
	DropMargin = 5 * time.Minute
	// DrainsAtOnce is how many nodes of a scale-down are emptied at the same time at most.
	DrainsAtOnce = 10
)

// advanceDown drains and terminates the targets, several at once. It waits while the world is not to be trusted, gives up
// what can be given up when nodes are needed after all, and ends when no target is open.
func (e *executor) advanceDown(ctx context.Context) error {
	if why := e.notAnyMore(e.Record.Action); why != "" {
		if err := e.abandon(ctx, why); err != nil {
			return err
		}
	}
	if e.Record.Action.DeletesPool() {
		if err := e.taintAll(ctx); err != nil {
			return err
		}
	}
	err := e.advanceTargets(ctx)
	if errors.Is(err, journal.ErrStop) || errors.Is(err, journal.ErrLeaseLost) || ctx.Err() != nil {
		return err
	}
	switch a := e.Record.Action; {
	case !slices.ContainsFunc(a.Targets, func(r state.Removal) bool { return !r.Done() }):
		return errors.Join(err, e.finishDown(ctx, false))
	case err != nil && e.age(a) > e.clearAfter()+DropMargin:
		e.errs = append(e.errs, err)
		return e.finishDown(ctx, true)
	}
	return err
}

// advanceTargets continues the targets that have been begun, and then begins others, as many at a time as
// [executor.begins] allows.
func (e *executor) advanceTargets(ctx context.Context) error {
	var begun, waiting []int
	for i, r := range e.Record.Action.Targets {
		switch {
		case r.Done(), e.waits(r):
		case e.Record.Action.Queued(r):
			waiting = append(waiting, i)
		default:
			begun = append(begun, i)
		}
	}
	err := e.each(ctx, len(begun), func(i int) error { return e.advanceTarget(ctx, begun[i]) })
	for len(waiting) > 0 && !errors.Is(err, journal.ErrStop) && !errors.Is(err, journal.ErrLeaseLost) && ctx.Err() == nil {
		n := min(e.begins(), len(waiting))
		if n <= 0 {
			break
		}
		next := waiting[:n]
		waiting = waiting[n:]
		err = errors.Join(err, e.each(ctx, n, func(i int) error { return e.advanceTarget(ctx, next[i]) }))
	}
	return err
}

// begins returns how many further nodes may be emptied now: one at first, and two more for each node that is empty.
// While a budget holds pods of one node no other is begun: it would take no more pods, and its own might wait for the
// same budget.
func (e *executor) begins() int {
	open, emptied := 0, 0
	for _, r := range e.Record.Action.Targets {
		switch r.State {
		case state.RemovalDrained, state.RemovalTerminated, state.RemovalCompleted:
			emptied++
		case state.RemovalTainted, state.RemovalDraining:
			if !e.Record.Action.Queued(r) {
				open++
			}
		}
	}
	if e.budgeted || e.mustEnd() {
		return 0
	}
	return min(1+2*emptied, DrainsAtOnce) - open
}

func (e *executor) advanceTarget(ctx context.Context, i int) error {
	a := e.Record.Action
	if a.Targets[i].State == state.RemovalPlanned {
		if why := e.needs(i); why != "" {
			if err := e.drop(ctx, i, why); err != nil {
				return err
			}
		}
	}
	return e.removal(i).advance(ctx)
}

// removal is the removal of a target of the open scale-down.
func (e *executor) removal(at int) removing {
	a := e.Record.Action
	return removing{
		executor: e, action: a.ID, forced: e.seen.Spec.Drain.Force && a.Reason.MustGo(),
		find: func() *state.Removal { return &e.Record.Action.Targets[at] },
	}
}

// notAnyMore tells why an open scale-down must not go on, "" if it may.
func (e *executor) notAnyMore(a *state.Action) string {
	switch d := e.decision; {
	case e.age(a) > e.clearAfter():
		return fmt.Sprintf("no node has gone in %s", e.clearAfter())
	case (a.Reason == plan.Outdated || a.Reason == plan.Underutilized) && e.seen.Spec.Disruption.Paused:
		return "disruption is paused"
	case a.DeletesPool() && !e.seen.Spec.Plan.Deleting:
		return "the WorkerPool is not being deleted any more"
	case a.ID == e.snapshot.State.ActionID && d.Want > d.Workers:
		return "more workers are desired: " + d.Message
	}
	return ""
}

// clearAfter is how long no target of a scale-down may be done until it is given up: longer than a single drain may
// take.
func (e *executor) clearAfter() time.Duration {
	return max(ClearAfter, e.seen.Spec.Drain.Timeout+clearMargin)
}

// abandon gives back every target that is not drained yet. What is drained is finished, unless its time is over. A
// node whose pods have been evicted in vain is left alone for a while, longer each time.
func (e *executor) abandon(ctx context.Context, why string) error {
	a := e.Record.Action
	old := e.age(a) > e.clearAfter()
	changed := false
	for i := range a.Targets {
		r := &a.Targets[i]
		touched := !a.Queued(*r)
		switch {
		case r.State == state.RemovalPlanned, r.State == state.RemovalTainted, r.State == state.RemovalDraining,
			r.State == state.RemovalDrained && old:
			r.State, r.Since, r.Error, changed = state.RemovalRestoring, e.Now(), why, true
			switch {
			case touched && old:
				e.backOffDrain(r.InstanceID, drainBackoffMax)
			case r.Evicted:
				e.backOffDrain(r.InstanceID, DrainBackoffMin)
			}
		}
	}
	if !changed {
		return nil
	}
	e.Event(journal.Event{Reason: journal.EventScaleDownAborted, Warning: old, Action: a.ID, Message: "The scale-down is given up: " + why})
	return e.save(ctx)
}

// waits tells whether a target stays as it is while too little is known, or too much of the world looks broken, for
// anything to be removed. Giving nodes back does not wait.
func (e *executor) waits(r state.Removal) bool {
	if r.State == state.RemovalRestoring {
		return false
	}
	return !e.seen.Complete() || e.distrusted()
}

// distrusted tells whether so many workers are unready that what is seen is not to be trusted.
func (e *executor) distrusted() bool {
	unready, workers := 0, 0
	for _, w := range e.snapshot.Workers {
		if w.Counts() || e.stillWorks(w) {
			workers++
			if !w.Ready && !w.Cordoned {
				unready++
			}
		}
	}
	return e.seen.Spec.Plan.Distrusts(unready, workers)
}

// needs tells why a target that has not been touched is needed after all, "" if it is not. In the cycle that has chosen it,
// nothing is asked again.
func (e *executor) needs(at int) string {
	a := e.Record.Action
	if a.ID != e.snapshot.State.ActionID || a.DeletesPool() {
		return ""
	}
	var later []string
	for _, r := range a.Targets[at+1:] {
		if r.State == state.RemovalPlanned {
			later = append(later, r.InstanceID)
		}
	}
	return plan.Objection(e.snapshot, a.Reason, a.Targets[at].InstanceID, later)
}

// pinned returns why the pods of a target could not run on other nodes, "" if they could, or if the pool is being
// deleted. Other nodes that are being removed are no homes, and their pods keep the room that they will need.
func (e *executor) pinned(node string) string {
	if e.snapshot.Homes == nil || node == "" || e.seen.Spec.Plan.Deleting {
		return ""
	}
	leaving := []string{node}
	mayWait := true
	if a := e.Record.Action; a != nil {
		mayWait = a.Reason.MustGo()
		for _, r := range a.Targets {
			if r.Node != node && (r.State == state.RemovalTainted || r.State == state.RemovalDraining) {
				leaving = append(leaving, r.Node)
			}
		}
	}
	slices.Sort(leaving) // for all of them it is asked once
	return e.snapshot.Homes.Without(leaving, mayWait)
}

// drop leaves out a target that has not been touched.
func (e *executor) drop(ctx context.Context, at int, why string) error {
	r := &e.Record.Action.Targets[at]
	r.State, r.Since, r.Error = state.RemovalRestoring, e.Now(), why
	e.Event(journal.Event{
		Reason: journal.EventScaleDownAborted, Instance: r.InstanceID, Node: r.Node, Action: e.Record.Action.ID,
		Message: fmt.Sprintf("Node %s stays: %s", r.Node, why),
	})
	return e.save(ctx)
}

// finishDown ends the scale-down. Its cooldown begins if anything was removed.
func (e *executor) finishDown(ctx context.Context, cleared bool) error {
	a := e.Record.Action
	removed, failed := 0, ""
	for _, r := range a.Targets {
		if r.State == state.RemovalCompleted {
			removed++
		} else {
			failed = r.Error
		}
	}
	switch {
	case removed == 0:
	case a.Reason == plan.Outdated:
		e.Record.LastSwap = e.Now()
	default:
		e.Record.LastDown = e.Now()
	}
	e.Event(journal.Event{
		Reason: journal.EventScaledDown, Warning: cleared, Action: a.ID,
		Message: fmt.Sprintf("Removed %d of %d nodes%s", removed, len(a.Targets), because(failed)),
	})
	e.Record.Action = nil
	return e.save(ctx)
}
