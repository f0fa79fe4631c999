package nodepool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	coolFor = 3 * time.Minute // placements after definitive errors
	// suspectFor is for how long a zone and type come last after a node there did not join, or EC2 would not have the
	// launch at all. It is longer than any wait between launches that fail, so that the next one goes elsewhere.
	suspectFor = 55 * time.Minute
	// Waits between tries of the same launch, doubling.
	retryMin = 2 * time.Second
	retryMax = time.Minute
	// keptJoins is how many measured launches are remembered: as many as the estimate needs to get from the default to any
	// value that is likely.
	keptJoins = 20
)

// advanceAction goes on with the open action.
func (t *cycle) advanceAction(ctx context.Context) error {
	switch a := t.record.Action; {
	case a == nil:
		return nil
	case a.Kind == plan.ActionUp:
		return t.advanceUp(ctx, a)
	default:
		return t.advanceDown(ctx)
	}
}

// advanceUp launches what is planned, looks for what has joined, and ends the scale-up when no slot is open. Saving
// replaces the record, so that the action is read anew after it.
func (t *cycle) advanceUp(ctx context.Context, a *state.Action) error {
	if err := t.adopt(ctx, a); err != nil {
		return err
	}
	if t.seen.spec.Plan.Deleting {
		if err := t.verify(ctx); err != nil {
			return err
		}
		return t.endUp(ctx)
	}
	for i := range t.record.Action.Slots {
		if t.record.Action.Slots[i].State != state.SlotPlanned {
			continue
		}
		if t.mustEnd() {
			break
		}
		if err := t.launch(ctx, i); err != nil {
			return err
		}
	}
	if err := t.verify(ctx); err != nil {
		return err
	}
	return t.finishUp(ctx)
}

// adopt finds instances that were launched for slots whose launch nobody has lived to write down.
func (t *cycle) adopt(ctx context.Context, a *state.Action) error {
	adopted := false
	for _, i := range inOrder(t.seen.instances) {
		at := slices.IndexFunc(a.Slots, func(s state.Slot) bool { return s.Token == i.Token && s.Number == i.Slot })
		if i.Action != a.ID || at < 0 || a.Slots[at].State != state.SlotPlanned || i.State == provider.Leaving {
			continue
		}
		t.launched(&a.Slots[at], i)
		adopted = true
	}
	if !adopted {
		return nil
	}
	return t.save(ctx)
}

// launched puts an instance into its slot.
func (t *cycle) launched(s *state.Slot, i provider.Instance) {
	s.State, s.InstanceID, s.ProviderID, s.Error = state.SlotLaunched, i.ID, i.ProviderID, ""
	if s.Requested.IsZero() {
		s.Requested = t.now()
	}
	t.event(Event{
		Reason: EventLaunched, Instance: i.ID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("Launched %s: %s %s in %s", i.ID, s.Market, s.InstanceType, s.Zone),
	})
}

// launch tries one planned slot.
func (t *cycle) launch(ctx context.Context, at int) error {
	a := t.record.Action
	s := &a.Slots[at]
	now := t.now()
	switch {
	case now.Before(s.NotBefore):
		return nil
	case now.Sub(a.Started) > t.seen.spec.Join.Timeout:
		t.fail(s, fmt.Sprintf("no instance in %s: %s", t.seen.spec.Join.Timeout, s.Error))
		return t.save(ctx)
	}
	if s.Requested.IsZero() {
		s.Requested = now
	}
	i, err := t.act.launch(ctx, provider.Launch{Action: a.ID, Slot: s.Number, Token: s.Token, Placement: s.Placement})
	if err == nil {
		t.launched(s, i)
		return t.save(ctx)
	}
	if t.act.left() <= 0 || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errStop, err)
	}
	return t.launchFailed(ctx, at, err)
}

// launchFailed notes what an error means: definitive ones fail the slot, for which the next decision finds a substitute; others have
// the same launch tried again, as nobody knows whether it has happened.
func (t *cycle) launchFailed(ctx context.Context, at int, err error) error {
	a := t.record.Action
	s := &a.Slots[at]
	now := t.now()
	switch class := provider.ClassOf(err); {
	case class == provider.Unknown, class == provider.Throttled, class == provider.TokenMismatch && now.Sub(s.Requested) < t.seen.vanishGrace:
		// After a mismatch the token may have launched an instance with other parameters, that is not listed yet.
		s.Tries++
		s.NotBefore, s.Error = now.Add(t.jitter.backoff(s.Tries, retryMin, retryMax)), err.Error()
		t.errs = append(t.errs, fmt.Errorf("launch slot %d of %s: %w", s.Number, a.ID, err))
	case class == provider.Capacity, class == provider.Quota, class == provider.Address, class == provider.TokenMismatch:
		t.fail(s, err.Error())
		s.Refused, s.Lost = class != provider.TokenMismatch, true
		t.cool(class, s.Placement, err.Error())
	default:
		t.errs = append(t.errs, fmt.Errorf("launch slot %d of %s: %w", s.Number, a.ID, err))
		t.suspect(s.Placement, err.Error())
		for i := range a.Slots {
			if a.Slots[i].State == state.SlotPlanned {
				t.fail(&a.Slots[i], err.Error())
			}
		}
	}
	return t.save(ctx)
}

// fail ends a slot that nothing came of.
func (t *cycle) fail(s *state.Slot, why string) {
	s.State, s.Error = state.SlotFailed, why
	t.event(Event{
		Reason: EventLaunchFailed, Warning: true, Instance: s.InstanceID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("Slot %d, %s %s in %s: %s", s.Number, s.Market, s.InstanceType, s.Zone, why),
	})
}

// cool keeps placements from being tried that would fail for the same reason: of capacity that type in that zone and
// market, of a quota its market wherever, of addresses its subnet, whatever is launched in it.
func (t *cycle) cool(class provider.Class, p plan.Placement, why string) {
	until := t.now().Add(coolFor)
	c := plan.Cooling{Zone: p.Zone, InstanceType: p.InstanceType, Market: p.Market, Until: until, Reason: why}
	switch class {
	case provider.Quota:
		c.Zone, c.InstanceType = "", ""
	case provider.Address:
		c.Subnet, c.InstanceType, c.Market = p.Subnet, "", ""
	case provider.TokenMismatch:
		return // it says nothing of the placement
	}
	t.addCooling(c)
}

// addCooling replaces what is known of the same placement.
func (t *cycle) addCooling(c plan.Cooling) {
	t.record.Cooling = slices.DeleteFunc(t.record.Cooling, func(old plan.Cooling) bool {
		old.Until, old.Reason = c.Until, c.Reason
		return old == c
	})
	t.record.Cooling = append(t.record.Cooling, c)
}

// suspect has a zone and type tried last for a while: what went wrong there may go wrong again, whatever the market.
func (t *cycle) suspect(p plan.Placement, why string) {
	t.trust(p)
	t.record.Cooling = append(t.record.Cooling, plan.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: t.now().Add(suspectFor), Reason: why, Suspected: true,
	})
}

// trust ends that.
func (t *cycle) trust(p plan.Placement) {
	t.record.Cooling = slices.DeleteFunc(t.record.Cooling, func(c plan.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}

// verify looks whether the nodes of launched instances are Ready.
func (t *cycle) verify(ctx context.Context) error {
	if t.seen.cluster == nil {
		return nil
	}
	changed := false
	var failed []string
	for i := range t.record.Action.Slots {
		s := &t.record.Action.Slots[i]
		if s.State != state.SlotLaunched {
			continue
		}
		node := t.seen.node(instanceOf(*t.record.Action, *s))
		listed, there := t.seen.instances[s.InstanceID]
		if node != nil {
			if err := t.claim(ctx, node.Object.Name); err != nil {
				if err := t.carryOn(ctx, err); err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case node != nil && node.Ready:
			t.join(s, node.Object.Name, node.ReadySince)
		case there && listed.State == provider.Leaving, t.seen.gone(s.InstanceID):
			t.fail(s, fmt.Sprintf("instance %s has gone before its node joined", s.InstanceID))
		case t.seen.listErr == nil && t.now().Sub(s.Requested) > t.seen.spec.Join.Timeout:
			t.joinFailed(s)
			failed = append(failed, s.InstanceID)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return nil
	}
	if err := t.save(ctx); err != nil {
		return err
	}
	for _, id := range failed {
		if err := t.carryOn(ctx, t.act.markJoinFailed(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// join puts a node into its slot.
func (t *cycle) join(s *state.Slot, node string, since time.Time) {
	if since.IsZero() || since.Before(s.Requested) {
		since = t.seen.at
	}
	s.State, s.Node = state.SlotReady, node
	t.trust(s.Placement)
	r := &t.record
	r.Joins = append(r.Joins, state.Join{Requested: s.Requested, Ready: since})
	r.Joins = r.Joins[max(0, len(r.Joins)-keptJoins):]
	t.event(Event{
		Reason: EventJoined, Instance: s.InstanceID, Node: node, Action: r.Action.ID,
		Message: fmt.Sprintf("Node %s of %s is Ready, %s after it was asked for", node, s.InstanceID, since.Sub(s.Requested).Round(time.Second)),
	})
}

// joinFailed gives an instance up whose node did not join in time. It is kept for a while to be looked at.
func (t *cycle) joinFailed(s *state.Slot) {
	now := t.now()
	s.State, s.Error = state.SlotFailed, fmt.Sprintf("its node was not Ready within %s", t.seen.spec.Join.Timeout)
	t.suspect(s.Placement, s.Error)
	t.record.Condemned = append(t.record.Condemned, state.Condemned{
		InstanceID: s.InstanceID, Reason: plan.CondemnedJoinFailed, Since: now, Due: now.Add(t.seen.spec.Join.KeepFailedFor),
	})
	t.event(Event{
		Reason: EventJoinFailed, Warning: true, Instance: s.InstanceID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("The node of %s was not Ready within %s", s.InstanceID, t.seen.spec.Join.Timeout),
	})
}

// finishUp ends the scale-up once no slot is open. What joined counts; nothing at all is a failure, after which launches
// back off. If the cloud has only had none to give, nothing was lost by asking: it is asked again once that has cooled.
func (t *cycle) finishUp(ctx context.Context) error {
	a := t.record.Action
	ready, swapped, refused, failed := 0, 0, true, ""
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
	r := &t.record
	if ready > 0 {
		r.Failures = 0
		if swapped > 0 {
			r.LastSwap = t.now()
		}
		if ready > swapped {
			r.LastUp = t.now()
		}
		t.event(Event{Reason: EventScaledUp, Action: a.ID, Message: fmt.Sprintf("%d of %d nodes joined%s", ready, desired(a), because(failed))})
	} else {
		if !refused {
			r.FailedAt, r.Failures = t.now(), r.Failures+1
		}
		t.event(Event{Reason: EventScaleUpFailed, Warning: true, Action: a.ID, Message: fmt.Sprintf("None of %d nodes joined%s", desired(a), because(failed))})
	}
	r.Action = nil
	return t.save(ctx)
}

// desired counts the nodes of a scale-up: slots that take another's place are not further ones.
func desired(a *state.Action) (n int) {
	for _, s := range a.Slots {
		if s.Replaces == nil {
			n++
		}
	}
	return n
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
