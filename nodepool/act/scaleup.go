package act

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/state"
)

// keptJoins is the number of measured launches that are recorded: enough for the estimate to move
// from the default to any likely value.
const keptJoins = 20

// maxLaunchError bounds a recorded error, in bytes.
const maxLaunchError = 500

// scaleUp continues the open scale-up.
type scaleUp struct {
	c        *cycle
	launcher *launcher
}

// advance launches planned slots, checks which nodes have joined, and ends the scale-up when no
// slot is open.
func (u scaleUp) advance(ctx context.Context, a *state.Action) error {
	if err := u.launcher.adopt(ctx, a); err != nil {
		return err
	}
	if u.c.seen.Spec.Plan.Deleting {
		if err := u.verify(ctx); err != nil {
			return err
		}
		return u.abort(ctx)
	}
	if err := u.launcher.launchPlanned(ctx); err != nil {
		return err
	}
	if err := u.verify(ctx); err != nil {
		return err
	}
	return u.finish(ctx)
}

// verify checks whether the nodes of launched instances are Ready.
func (u scaleUp) verify(ctx context.Context) error {
	if u.c.seen.Cluster == nil {
		return nil
	}
	unlabelled, err := u.claimNodes(ctx)
	if err != nil {
		return err
	}
	changed := false
	var failed []string
	for i := range u.c.record.Action.Slots {
		s := &u.c.record.Action.Slots[i]
		if s.State != state.SlotLaunched || unlabelled[i] {
			continue
		}
		before := s.State
		if tooLate := u.verifySlot(s); tooLate {
			failed = append(failed, s.InstanceID)
		}
		changed = changed || s.State != before
	}
	if !changed {
		return nil
	}
	if err := u.c.save(ctx); err != nil {
		return err
	}
	return u.c.collectError(ctx, u.c.each(ctx, len(failed),
		func(i int) error { return u.c.cloud.markJoinFailed(ctx, failed[i]) }))
}

// verifySlot updates a launched slot, and reports whether its node did not join in time.
func (u scaleUp) verifySlot(s *state.Slot) (tooLate bool) {
	node := u.c.seen.Node(u.c.record.Action.Instance(*s))
	listed, exists := u.c.seen.Instances[s.InstanceID]
	switch {
	case node != nil && node.Ready:
		u.join(s, node.Object.Name, node.ReadySince)
	case exists && listed.State == fleet.Leaving, u.c.seen.Gone(s.InstanceID):
		failSlot(u.c, s, fmt.Sprintf("instance %s disappeared before its node joined", s.InstanceID))
	case u.c.seen.ListErr == nil && u.c.now().Sub(s.Requested) > u.c.seen.Spec.Join.Timeout:
		u.joinFailed(s)
		return true
	}
	return false
}

// claimNodes labels the Nodes of launched instances with the pool. It returns the slots whose Nodes
// could not be labelled: the next cycle tries again.
func (u scaleUp) claimNodes(ctx context.Context) (unlabelled map[int]bool, err error) {
	var slots []int
	var names []string
	for i, s := range u.c.record.Action.Slots {
		if node := u.c.seen.Node(u.c.record.Action.Instance(s)); s.State == state.SlotLaunched && node != nil {
			slots, names = append(slots, i), append(names, node.Object.Name)
		}
	}
	unlabelled = map[int]bool{}
	err = u.c.each(ctx, len(names), func(i int) error {
		err := u.c.labels.ensureLabelled(ctx, names[i])
		unlabelled[slots[i]] = err != nil
		return err
	})
	return unlabelled, u.c.collectError(ctx, err)
}

// join records the Node of a slot.
func (u scaleUp) join(s *state.Slot, node string, since time.Time) {
	if since.IsZero() || since.Before(s.Requested) {
		since = u.c.seen.At
	}
	s.State, s.Node = state.SlotReady, node
	u.c.cooler().trust(s.Placement)
	r := u.c.record
	r.Joins = append(r.Joins, state.Join{Requested: s.Requested, Ready: since})
	r.Joins = r.Joins[max(0, len(r.Joins)-keptJoins):]
	u.c.event(journal.Event{
		Reason: journal.EventJoined, Instance: s.InstanceID, Node: node, Action: r.Action.ID,
		Message: fmt.Sprintf("Node %s of %s is Ready, %s after its launch was requested", node, s.InstanceID,
			since.Sub(s.Requested).Round(time.Second)),
	})
}

// joinFailed gives up an instance whose node did not join in time. It is kept for inspection for
// some time.
func (u scaleUp) joinFailed(s *state.Slot) {
	now := u.c.now()
	s.State, s.Error = state.SlotFailed, fmt.Sprintf("its node was not Ready within %s", u.c.seen.Spec.Join.Timeout)
	u.c.cooler().suspect(s.Placement, s.Error)
	u.c.record.PendingTerminations = append(u.c.record.PendingTerminations, state.PendingTermination{
		InstanceID: s.InstanceID, Reason: state.TerminateJoinFailed, Since: now,
		Due: now.Add(u.c.seen.Spec.Join.KeepFailedFor),
	})
	u.c.event(journal.Event{
		Reason: journal.EventJoinFailed, Warning: true, Instance: s.InstanceID, Action: u.c.record.Action.ID,
		Message: fmt.Sprintf("The node of %s was not Ready within %s", s.InstanceID, u.c.seen.Spec.Join.Timeout),
	})
}

// finish ends the scale-up once no slot is open. If some nodes joined it succeeded; otherwise it
// failed, and launches back off. If the cloud only lacked capacity there is no backoff: the
// placements cool instead.
func (u scaleUp) finish(ctx context.Context) error {
	a := u.c.record.Action
	ready, swapped, refused, failed := 0, 0, true, ""
	u.c.record.LaunchError = launchError(a)
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
	r := u.c.record
	if ready > 0 {
		r.Failures = 0
		if swapped > 0 {
			r.LastSwap = u.c.now()
		}
		if ready > swapped {
			r.LastUp = u.c.now()
		}
		u.c.event(journal.Event{
			Reason: journal.EventScaledUp, Action: a.ID,
			Message: fmt.Sprintf("%d of %d nodes joined%s", ready, len(a.Slots), reasonSuffix(failed)),
		})
	} else {
		if !refused {
			r.FailedAt, r.Failures, r.LaunchSpec = u.c.now(), r.Failures+1, u.c.seen.Spec.LaunchSpec
		}
		u.c.event(journal.Event{
			Reason: journal.EventScaleUpFailed, Warning: true, Action: a.ID,
			Message: fmt.Sprintf("None of %d nodes joined%s", len(a.Slots), reasonSuffix(failed)),
		})
	}
	r.Action = nil
	return u.c.save(ctx)
}

// abort ends the scale-up of a pool that is being deleted. Planned slots are never launched, and
// instances that have not joined become pending terminations. A launch whose answer was lost is
// found by its tags.
func (u scaleUp) abort(ctx context.Context) error {
	a := u.c.record.Action
	launched := 0
	for _, s := range a.Slots {
		if s.State != state.SlotLaunched {
			continue
		}
		launched++
		if u.c.record.PendingTermination(s.InstanceID) == nil {
			u.c.record.PendingTerminations = append(u.c.record.PendingTerminations,
				state.PendingTermination{InstanceID: s.InstanceID, Reason: state.TerminateDeleted,
					Since: u.c.seen.At, Due: u.c.seen.At})
		}
	}
	u.c.event(journal.Event{Reason: journal.EventScaleUpAborted, Action: a.ID,
		Message: fmt.Sprintf("The scale-up was given up because the WorkerPool is being deleted; "+
			"%d instances have not joined", launched)})
	u.c.record.Action = nil
	return u.c.save(ctx)
}

// launchError returns why a slot of a scale-up was not launched, "" if slots failed only for lack
// of capacity.
func launchError(a *state.Action) string {
	for _, s := range a.Slots {
		if s.State == state.SlotFailed && s.InstanceID == "" && !s.Refused && s.Error != "" {
			return state.Shorten(s.Error, maxLaunchError)
		}
	}
	return ""
}

func reasonSuffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
