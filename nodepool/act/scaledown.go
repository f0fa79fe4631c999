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
	// ClearAfter is the shortest time without a finished target after which a scale-down is given up
	// and its remaining nodes are uncordoned. See [scaleDown.clearAfter].
	ClearAfter = 15 * time.Minute
	// clearMargin is the time of a target in addition to drain.timeout: binding pods, terminating
	// pods, volumes, the instance.
	clearMargin = 10 * time.Minute
	// DropMargin is the additional time after which a scale-down is dropped even if nodes cannot be
	// uncordoned. Their marks are found later.
	DropMargin = 5 * time.Minute
	// DrainsAtOnce bounds the nodes of a scale-down that are drained at the same time.
	DrainsAtOnce = 10
)

// scaleDown continues the open scale-down.
type scaleDown struct {
	c      *cycle
	drains *drains
}

// advance drains and terminates the targets, several at once. It waits while observations cannot be
// trusted, gives up what it can when nodes are needed after all, and ends when no target is open.
func (s scaleDown) advance(ctx context.Context) error {
	if why := s.abortReason(s.c.record.Action); why != "" {
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
	case err != nil && s.sinceProgress(a) > s.clearAfter()+DropMargin:
		s.c.errs = append(s.c.errs, err)
		return s.finish(ctx, true)
	}
	return err
}

// advanceTargets continues the targets that have begun, and then begins others, as many as
// [scaleDown.mayBegin] allows.
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
		n := min(s.mayBegin(), len(waiting))
		if n <= 0 {
			break
		}
		next := waiting[:n]
		waiting = waiting[n:]
		err = errors.Join(err, s.c.each(ctx, n, func(i int) error { return s.advanceTarget(ctx, next[i]) }))
	}
	return err
}

// mayBegin returns the number of further nodes that may be drained now: one at first, and two more
// for each node that is empty. While a budget blocks pods of one node no other is begun: it would
// take no more pods, and its own might wait for the same budget.
func (s scaleDown) mayBegin() int {
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
	if s.drains.budgeted || s.c.outOfTime() {
		return 0
	}
	return min(1+2*emptied, DrainsAtOnce) - open
}

func (s scaleDown) advanceTarget(ctx context.Context, i int) error {
	a := s.c.record.Action
	if a.Targets[i].State == state.RemovalPlanned {
		if why := s.whyNeeded(i); why != "" {
			if err := s.skipTarget(ctx, i, why); err != nil {
				return err
			}
		}
	}
	return s.removal(i).advance(ctx)
}

// removal returns the removal of a target of the open scale-down.
func (s scaleDown) removal(at int) removal {
	a := s.c.record.Action
	return removal{
		c: s.c, drains: s.drains, action: a.ID, purpose: purpose{forced: s.c.seen.Spec.Drain.Force && plan.MustGo(a.Reason)},
		find: func() *state.Removal { return &s.c.record.Action.Targets[at] },
	}
}

// abortReason returns why an open scale-down must not continue, "" if it may.
func (s scaleDown) abortReason(a *state.Action) string {
	switch d := s.c.decision; {
	case s.sinceProgress(a) > s.clearAfter():
		return fmt.Sprintf("no node was removed in %s", s.clearAfter())
	case (a.Reason == plan.Outdated || a.Reason == plan.Underutilized) && s.c.seen.Spec.Disruption.Paused:
		return "disruption is paused"
	case a.DeletesPool() && !s.c.seen.Spec.Plan.Deleting:
		return "the WorkerPool is no longer being deleted"
	case a.ID == s.c.snapshot.Record.ActionID() && d.Desired > d.Workers:
		return "more workers are desired: " + d.Message
	}
	return ""
}

// clearAfter returns the time without a finished target after which a scale-down is given up:
// longer than a single drain may take.
func (s scaleDown) clearAfter() time.Duration {
	return max(ClearAfter, s.c.seen.Spec.Drain.Timeout+clearMargin)
}

// abandon uncordons every target that is not drained yet. Drained ones are finished, unless their
// time is over. A node whose pods were evicted without effect is not drained again for some time,
// longer with each failure.
func (s scaleDown) abandon(ctx context.Context, why string) error {
	a := s.c.record.Action
	old := s.sinceProgress(a) > s.clearAfter()
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
		Message: "The scale-down was given up: " + why})
	return s.c.save(ctx)
}

// taintAll taints every node of a pool deletion before the first is drained, so that evicted pods
// do not move to the next one.
func (s scaleDown) taintAll(ctx context.Context) error {
	var planned []int
	for i, r := range s.c.record.Action.Targets {
		if r.State == state.RemovalPlanned && !s.waits(r) {
			planned = append(planned, i)
		}
	}
	for part := range slices.Chunk(planned, 5*maxCalls) {
		if s.c.outOfTime() {
			return nil
		}
		err := s.c.each(ctx, len(part), func(i int) error { return s.removal(part[i]).step(ctx) })
		if err := s.c.collectError(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether a target must wait because too little is known, or too many workers look
// broken, for any removal. Uncordoning does not wait.
func (s scaleDown) waits(r state.Removal) bool {
	if r.State == state.RemovalRestoring {
		return false
	}
	return !s.c.seen.Complete() || s.c.distrusted()
}

// whyNeeded returns why a target that has not been touched is needed after all, "" if it is not. It
// does not check again in the cycle that chose the target.
func (s scaleDown) whyNeeded(at int) string {
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

// skipTarget skips a target that has not been touched.
func (s scaleDown) skipTarget(ctx context.Context, at int, why string) error {
	r := &s.c.record.Action.Targets[at]
	r.State, r.Since, r.Error = state.RemovalRestoring, s.c.now(), why
	s.c.event(journal.Event{
		Reason: journal.EventScaleDownAborted, Instance: r.InstanceID, Node: r.Node, Action: s.c.record.Action.ID,
		Message: fmt.Sprintf("Node %s stays: %s", r.Node, why),
	})
	return s.c.save(ctx)
}

// finish ends the scale-down. Its cooldown begins if any node was removed.
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
		Message: fmt.Sprintf("Removed %d of %d nodes%s", removed, len(a.Targets), reasonSuffix(failed)),
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

// sinceProgress returns the time since the scale-down began, or since its last target was finished, because a
// scale-down may have hundreds of targets.
func (s scaleDown) sinceProgress(a *state.Action) time.Duration {
	since := a.Started
	for _, r := range a.Targets {
		if r.Done() && r.Since.After(since) {
			since = r.Since
		}
	}
	return s.c.now().Sub(since)
}
