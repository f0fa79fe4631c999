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
	// terminated by then is given back. See [scaleDown.clearAfter].
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

// scaleDown continues the open scale-down.
type scaleDown struct {
	c      *cycle
	drains *drains
}

// advance drains and terminates the targets, several at once. It waits while the world is not to be trusted, gives up
// what can be given up when nodes are needed after all, and ends when no target is open.
func (s scaleDown) advance(ctx context.Context) error {
	if why := s.notAnyMore(s.c.record.Action); why != "" {
		if err := s.abandon(ctx, why); err != nil {
			return err
		}
	}
	if s.c.record.Action.DeletesPool() {
		if err := s.taintAll(ctx); err != nil {
			return err
		}
	}
	err := s.advanceTargets(ctx)
	if endsCycle(err) || ctx.Err() != nil {
		return err
	}
	switch a := s.c.record.Action; {
	case !slices.ContainsFunc(a.Targets, func(r state.Removal) bool { return !r.Done() }):
		return errors.Join(err, s.finish(ctx, false))
	case err != nil && s.age(a) > s.clearAfter()+DropMargin:
		s.c.errs = append(s.c.errs, err)
		return s.finish(ctx, true)
	}
	return err
}

// advanceTargets continues the targets that have been begun, and then begins others, as many at a time as
// [scaleDown.begins] allows.
func (s scaleDown) advanceTargets(ctx context.Context) error {
	var begun, waiting []int
	for i, r := range s.c.record.Action.Targets {
		switch {
		case r.Done(), s.waits(r):
		case s.c.record.Action.Queued(r):
			waiting = append(waiting, i)
		default:
			begun = append(begun, i)
		}
	}
	err := s.c.each(ctx, len(begun), func(i int) error { return s.advanceTarget(ctx, begun[i]) })
	for len(waiting) > 0 && !endsCycle(err) && ctx.Err() == nil {
		n := min(s.begins(), len(waiting))
		if n <= 0 {
			break
		}
		next := waiting[:n]
		waiting = waiting[n:]
		err = errors.Join(err, s.c.each(ctx, n, func(i int) error { return s.advanceTarget(ctx, next[i]) }))
	}
	return err
}

// begins returns how many further nodes may be emptied now: one at first, and two more for each node that is empty.
// While a budget holds pods of one node no other is begun: it would take no more pods, and its own might wait for the
// same budget.
func (s scaleDown) begins() int {
	open, emptied := 0, 0
	for _, r := range s.c.record.Action.Targets {
		switch r.State {
		case state.RemovalDrained, state.RemovalTerminated, state.RemovalCompleted:
			emptied++
		case state.RemovalTainted, state.RemovalDraining:
			if !s.c.record.Action.Queued(r) {
				open++
			}
		}
	}
	if s.drains.budgeted || s.c.mustEnd() {
		return 0
	}
	return min(1+2*emptied, DrainsAtOnce) - open
}

func (s scaleDown) advanceTarget(ctx context.Context, i int) error {
	a := s.c.record.Action
	if a.Targets[i].State == state.RemovalPlanned {
		if why := s.needs(i); why != "" {
			if err := s.drop(ctx, i, why); err != nil {
				return err
			}
		}
	}
	return s.removal(i).advance(ctx)
}

// removal is the removal of a target of the open scale-down.
func (s scaleDown) removal(at int) removal {
	a := s.c.record.Action
	return removal{
		c: s.c, drains: s.drains, action: a.ID, purpose: purpose{forced: s.c.seen.Spec.Drain.Force && plan.MustGo(a.Reason)},
		find: func() *state.Removal { return &s.c.record.Action.Targets[at] },
	}
}

// notAnyMore tells why an open scale-down must not go on, "" if it may.
func (s scaleDown) notAnyMore(a *state.Action) string {
	switch d := s.c.decision; {
	case s.age(a) > s.clearAfter():
		return fmt.Sprintf("no node has gone in %s", s.clearAfter())
	case (a.Reason == plan.Outdated || a.Reason == plan.Underutilized) && s.c.seen.Spec.Disruption.Paused:
		return "disruption is paused"
	case a.DeletesPool() && !s.c.seen.Spec.Plan.Deleting:
		return "the WorkerPool is not being deleted any more"
	case a.ID == s.c.snapshot.Record.ActionID() && d.Want > d.Workers:
		return "more workers are desired: " + d.Message
	}
	return ""
}

// clearAfter is how long no target of a scale-down may be done until it is given up: longer than a single drain may
// take.
func (s scaleDown) clearAfter() time.Duration {
	return max(ClearAfter, s.c.seen.Spec.Drain.Timeout+clearMargin)
}

// abandon gives back every target that is not drained yet. What is drained is finished, unless its time is over. A
// node whose pods have been evicted in vain is left alone for a while, longer each time.
func (s scaleDown) abandon(ctx context.Context, why string) error {
	a := s.c.record.Action
	old := s.age(a) > s.clearAfter()
	changed := false
	for i := range a.Targets {
		r := &a.Targets[i]
		touched := !a.Queued(*r)
		switch {
		case r.State == state.RemovalPlanned, r.State == state.RemovalTainted, r.State == state.RemovalDraining,
			r.State == state.RemovalDrained && old:
			r.State, r.Since, r.Error, changed = state.RemovalRestoring, s.c.now(), why, true
			switch {
			case touched && old:
				backOffDrain(s.c, r.InstanceID, drainBackoffMax)
			case r.Evicted:
				backOffDrain(s.c, r.InstanceID, DrainBackoffMin)
			}
		}
	}
	if !changed {
		return nil
	}
	s.c.event(journal.Event{Reason: journal.EventScaleDownAborted, Warning: old, Action: a.ID,
		Message: "The scale-down is given up: " + why})
	return s.c.save(ctx)
}

// taintAll taints every node of a deletion before the first is drained, so that what is evicted
// from one does not come to the next.
func (s scaleDown) taintAll(ctx context.Context) error {
	var planned []int
	for i, r := range s.c.record.Action.Targets {
		if r.State == state.RemovalPlanned && !s.waits(r) {
			planned = append(planned, i)
		}
	}
	for part := range slices.Chunk(planned, 5*maxCalls) {
		if s.c.mustEnd() {
			return nil
		}
		err := s.c.each(ctx, len(part), func(i int) error { return s.removal(part[i]).step(ctx) })
		if err := s.c.carryOn(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// waits tells whether a target stays as it is while too little is known, or too much of the world looks broken, for
// anything to be removed. Giving nodes back does not wait.
func (s scaleDown) waits(r state.Removal) bool {
	if r.State == state.RemovalRestoring {
		return false
	}
	return !s.c.seen.Complete() || s.c.distrusted()
}

// needs tells why a target that has not been touched is needed after all, "" if it is not. In the
// cycle that has chosen it, nothing is asked again.
func (s scaleDown) needs(at int) string {
	a := s.c.record.Action
	if a.ID != s.c.snapshot.Record.ActionID() || a.DeletesPool() {
		return ""
	}
	var later []string
	for _, r := range a.Targets[at+1:] {
		if r.State == state.RemovalPlanned {
			later = append(later, r.InstanceID)
		}
	}
	return plan.Objection(s.c.snapshot, a.Reason, a.Targets[at].InstanceID, later)
}

// drop leaves out a target that has not been touched.
func (s scaleDown) drop(ctx context.Context, at int, why string) error {
	r := &s.c.record.Action.Targets[at]
	r.State, r.Since, r.Error = state.RemovalRestoring, s.c.now(), why
	s.c.event(journal.Event{
		Reason: journal.EventScaleDownAborted, Instance: r.InstanceID, Node: r.Node, Action: s.c.record.Action.ID,
		Message: fmt.Sprintf("Node %s stays: %s", r.Node, why),
	})
	return s.c.save(ctx)
}

// finish ends the scale-down. Its cooldown begins if anything was removed.
func (s scaleDown) finish(ctx context.Context, cleared bool) error {
	a := s.c.record.Action
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
		s.c.record.LastSwap = s.c.now()
	default:
		s.c.record.LastDown = s.c.now()
	}
	s.c.event(journal.Event{
		Reason: journal.EventScaledDown, Warning: cleared, Action: a.ID,
		Message: fmt.Sprintf("Removed %d of %d nodes%s", removed, len(a.Targets), because(failed)),
	})
	switch saved := s.c.record.Saved; {
	case saved == nil || plan.MustGo(a.Reason):
	case removed == 0:
		s.c.record.Saved = nil
	default:
		saved.Ended = s.c.now()
	}
	s.c.record.Action = nil
	return s.c.save(ctx)
}

// age is for how long a scale-down has been open, or since the last of its targets was done: it may have hundreds.
func (s scaleDown) age(a *state.Action) time.Duration {
	since := a.Started
	for _, r := range a.Targets {
		if r.Done() && r.Since.After(since) {
			since = r.Since
		}
	}
	return s.c.now().Sub(since)
}
