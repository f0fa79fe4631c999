package act

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// keptJoins is how many measured launches are remembered: as many as the estimate needs to get from the default to any
// value that is likely.
const keptJoins = 20

// advanceAction goes on with the open action.
func (e *executor) advanceAction(ctx context.Context) error {
	switch a := e.Record.Action; {
	case a == nil:
		return nil
	case a.Kind == plan.ActionUp:
		return e.advanceUp(ctx, a)
	default:
		return e.advanceDown(ctx)
	}
}

// advanceUp launches what is planned, looks for what has joined, and ends the scale-up when no slot is open.
func (e *executor) advanceUp(ctx context.Context, a *state.Action) error {
	if err := e.adopt(ctx, a); err != nil {
		return err
	}
	if e.seen.Spec.Plan.Deleting {
		if err := e.verify(ctx); err != nil {
			return err
		}
		return e.endUp(ctx)
	}
	if err := e.launchPlanned(ctx); err != nil {
		return err
	}
	if err := e.verify(ctx); err != nil {
		return err
	}
	return e.finishUp(ctx)
}

// verify looks whether the nodes of launched instances are Ready.
func (e *executor) verify(ctx context.Context) error {
	if e.seen.Cluster == nil {
		return nil
	}
	unlabelled, err := e.claimNodes(ctx)
	if err != nil {
		return err
	}
	changed := false
	var failed []string
	for i := range e.Record.Action.Slots {
		s := &e.Record.Action.Slots[i]
		if s.State != state.SlotLaunched || unlabelled[i] {
			continue
		}
		node := e.seen.Node(e.Record.Action.Instance(*s))
		listed, there := e.seen.Instances[s.InstanceID]
		switch {
		case node != nil && node.Ready:
			e.join(s, node.Object.Name, node.ReadySince)
		case there && listed.State == fleet.Leaving, e.seen.Gone(s.InstanceID):
			e.failed(s, fmt.Sprintf("instance %s has gone before its node joined", s.InstanceID))
		case e.seen.ListErr == nil && e.Now().Sub(s.Requested) > e.seen.Spec.Join.Timeout:
			e.joinFailed(s)
			failed = append(failed, s.InstanceID)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return nil
	}
	if err := e.save(ctx); err != nil {
		return err
	}
	return e.carryOn(ctx, e.each(ctx, len(failed), func(i int) error { return e.guard.markJoinFailed(ctx, failed[i]) }))
}

// claimNodes labels the Nodes of launched instances with the pool. It returns the slots of those that could not be
// labelled: they are looked at by the next cycle.
func (e *executor) claimNodes(ctx context.Context) (unlabelled map[int]bool, err error) {
	var slots []int
	var names []string
	for i, s := range e.Record.Action.Slots {
		if node := e.seen.Node(e.Record.Action.Instance(s)); s.State == state.SlotLaunched && node != nil {
			slots, names = append(slots, i), append(names, node.Object.Name)
		}
	}
	unlabelled = map[int]bool{}
	err = e.each(ctx, len(names), func(i int) error {
		err := e.claim(ctx, names[i])
		unlabelled[slots[i]] = err != nil
		return err
	})
	return unlabelled, e.carryOn(ctx, err)
}

// join puts a node into its slot.
func (e *executor) join(s *state.Slot, node string, since time.Time) {
	if since.IsZero() || since.Before(s.Requested) {
		since = e.seen.At
	}
	s.State, s.Node = state.SlotReady, node
	e.trust(s.Placement)
	r := &e.Record
	r.Joins = append(r.Joins, state.Join{Requested: s.Requested, Ready: since})
	r.Joins = r.Joins[max(0, len(r.Joins)-keptJoins):]
	e.Event(journal.Event{
		Reason: journal.EventJoined, Instance: s.InstanceID, Node: node, Action: r.Action.ID,
		Message: fmt.Sprintf("Node %s of %s is Ready, %s after it was asked for", node, s.InstanceID, since.Sub(s.Requested).Round(time.Second)),
	})
}

// joinFailed gives an instance up whose node did not join in time. It is kept for a while to be looked at.
func (e *executor) joinFailed(s *state.Slot) {
	now := e.Now()
	s.State, s.Error = state.SlotFailed, fmt.Sprintf("its node was not Ready within %s", e.seen.Spec.Join.Timeout)
	e.suspect(s.Placement, s.Error)
	e.Record.PendingTerminations = append(e.Record.PendingTerminations, state.PendingTermination{
		InstanceID: s.InstanceID, Reason: plan.TerminateJoinFailed, Since: now, Due: now.Add(e.seen.Spec.Join.KeepFailedFor),
	})
	e.Event(journal.Event{
		Reason: journal.EventJoinFailed, Warning: true, Instance: s.InstanceID, Action: e.Record.Action.ID,
		Message: fmt.Sprintf("The node of %s was not Ready within %s", s.InstanceID, e.seen.Spec.Join.Timeout),
	})
}

// finishUp ends the scale-up once no slot is open. What joined counts; nothing at all is a failure, after which launches
// back off. If the cloud has only had none to give, nothing was lost by asking: it is asked again once that has cooled.
func (e *executor) finishUp(ctx context.Context) error {
	a := e.Record.Action
	ready, swapped, refused, failed := 0, 0, true, ""
	e.Record.LaunchError = launchError(a)
	for _, s := range a.Slots {
		switch s.State {
		case state.SlotReady:
			ready++
			if s.Outdated {
				swapped++
			}
		case state.SlotFailed:
			if s.Lost {
				return nil // the next decision finds a substitute
			}
			failed = s.Error
			refused = refused && s.Refused
		default:
			return nil
		}
	}
	r := &e.Record
	if ready > 0 {
		r.Failures = 0
		if swapped > 0 {
			r.LastSwap = e.Now()
		}
		if ready > swapped {
			r.LastUp = e.Now()
		}
		e.Event(journal.Event{
			Reason: journal.EventScaledUp, Action: a.ID,
			Message: fmt.Sprintf("%d of %d nodes joined%s", ready, len(a.Slots), because(failed)),
		})
	} else {
		if !refused {
			r.FailedAt, r.Failures, r.LaunchSpec = e.Now(), r.Failures+1, e.seen.Spec.LaunchSpec
		}
		e.Event(journal.Event{
			Reason: journal.EventScaleUpFailed, Warning: true, Action: a.ID,
			Message: fmt.Sprintf("None of %d nodes joined%s", len(a.Slots), because(failed)),
		})
	}
	r.Action = nil
	return e.save(ctx)
}

// launchError returns why a slot of a scale-up was not launched, "" if none failed but for want of capacity.
func launchError(a *state.Action) string {
	for _, s := range a.Slots {
		if s.State == state.SlotFailed && s.InstanceID == "" && !s.Refused && s.Error != "" {
			return state.Shorten(s.Error, maxLaunchError)
		}
	}
	return ""
}

// maxLaunchError is how many bytes of an error are kept.
const maxLaunchError = 500

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
