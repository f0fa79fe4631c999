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
func (e *executor) advanceAction(ctx context.Context) error {
	switch a := e.record.Action; {
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
	if e.seen.spec.Plan.Deleting {
		if err := e.verify(ctx); err != nil {
			return err
		}
		return e.endUp(ctx)
	}
	for i := range e.record.Action.Slots {
		if e.record.Action.Slots[i].State != state.SlotPlanned {
			continue
		}
		if e.mustEnd() {
			break
		}
		if err := e.launch(ctx, i); err != nil {
			return err
		}
	}
	if err := e.verify(ctx); err != nil {
		return err
	}
	return e.finishUp(ctx)
}

// adopt finds instances that were launched for slots whose launch nobody has lived to write down.
func (e *executor) adopt(ctx context.Context, a *state.Action) error {
	adopted := false
	for _, i := range inOrder(e.seen.instances) {
		at := slices.IndexFunc(a.Slots, func(s state.Slot) bool { return s.Token == i.Token && s.Number == i.Slot })
		if i.Action != a.ID || at < 0 || a.Slots[at].State != state.SlotPlanned || i.State == provider.Leaving {
			continue
		}
		e.launched(&a.Slots[at], i)
		adopted = true
	}
	if !adopted {
		return nil
	}
	return e.save(ctx)
}

// launched puts an instance into its slot.
func (e *executor) launched(s *state.Slot, i provider.Instance) {
	s.State, s.InstanceID, s.ProviderID, s.Error = state.SlotLaunched, i.ID, i.ProviderID, ""
	if slices.Contains(s.Alternatives, i.InstanceType) {
		s.InstanceType = i.InstanceType
	}
	s.Alternatives = nil
	if s.Requested.IsZero() {
		s.Requested = e.now()
	}
	e.event(Event{
		Reason: EventLaunched, Instance: i.ID, Action: e.record.Action.ID,
		Message: fmt.Sprintf("Launched %s: %s %s in %s", i.ID, s.Market, s.InstanceType, s.Zone),
	})
}

// launch tries one planned slot.
func (e *executor) launch(ctx context.Context, at int) error {
	a := e.record.Action
	s := &a.Slots[at]
	now := e.now()
	switch {
	case now.Before(s.NotBefore):
		return nil
	case now.Sub(a.Started) > e.seen.spec.Join.Timeout:
		e.fail(s, fmt.Sprintf("no instance in %s: %s", e.seen.spec.Join.Timeout, s.Error))
		return e.save(ctx)
	}
	if s.Requested.IsZero() {
		s.Requested = now
	}
	l := provider.Launch{Action: a.ID, Slot: s.Number, Token: s.Token, Placement: s.Placement, Alternatives: s.Alternatives}
	i, err := e.guard.launch(ctx, l)
	if err == nil {
		e.refused(s.Placement, i.Refusals, true)
		e.launched(s, i)
		return e.save(ctx)
	}
	if e.guard.left() <= 0 || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errStop, err)
	}
	return e.launchFailed(ctx, at, err)
}

// launchFailed notes what an error means: definitive ones fail the slot, for which the next decision finds a substitute; others have
// the same launch tried again, as nobody knows whether it has happened.
func (e *executor) launchFailed(ctx context.Context, at int, err error) error {
	a := e.record.Action
	s := &a.Slots[at]
	now := e.now()
	switch class := provider.ClassOf(err); {
	case class == provider.Unknown, class == provider.Throttled, class == provider.TokenMismatch && now.Sub(s.Requested) < e.seen.vanishGrace:
		// After a mismatch the token may have launched an instance with other parameters, that is not listed yet.
		s.Tries++
		s.NotBefore, s.Error = now.Add(e.jitter.backoff(s.Tries, retryMin, retryMax)), err.Error()
		e.errs = append(e.errs, fmt.Errorf("launch slot %d of %s: %w", s.Number, a.ID, err))
	case class == provider.Capacity, class == provider.Quota, class == provider.Address, class == provider.TokenMismatch:
		e.fail(s, err.Error())
		s.Refused, s.Lost = class != provider.TokenMismatch, true
		if refusals := provider.RefusalsOf(err); len(refusals) > 0 {
			e.refused(s.Placement, refusals, false)
		} else {
			e.cool(class, s.Placement, err.Error())
		}
	default:
		e.errs = append(e.errs, fmt.Errorf("launch slot %d of %s: %w", s.Number, a.ID, err))
		e.suspect(s.Placement, err.Error())
		e.refused(s.Placement, provider.RefusalsOf(err), false)
		for i := range a.Slots {
			if a.Slots[i].State == state.SlotPlanned {
				e.fail(&a.Slots[i], err.Error())
			}
		}
	}
	return e.save(ctx)
}

// fail ends a slot that nothing came of.
func (e *executor) fail(s *state.Slot, why string) {
	s.State, s.Error, s.Alternatives = state.SlotFailed, why, nil
	e.event(Event{
		Reason: EventLaunchFailed, Warning: true, Instance: s.InstanceID, Action: e.record.Action.ID,
		Message: fmt.Sprintf("Slot %d, %s %s in %s: %s", s.Number, s.Market, s.InstanceType, s.Zone, why),
	})
}

// refused notes of each type of a launch what the cloud has said of it. If it has not said the same of all, or has launched another,
// it is about that type alone: AWS has quotas for each family.
func (e *executor) refused(p plan.Placement, refusals []provider.Refusal, launched bool) {
	differ := launched || slices.ContainsFunc(refusals, func(r provider.Refusal) bool { return r.Class != refusals[0].Class })
	for _, r := range refusals {
		p.InstanceType = r.InstanceType
		switch class := r.Class; class {
		case provider.Capacity, provider.Quota, provider.Address:
			if differ {
				class = provider.Capacity
			}
			e.cool(class, p, r.Reason)
		case provider.Invalid:
			e.suspect(p, r.Reason)
		}
	}
}

// cool keeps placements from being tried that would fail for the same reason: of capacity that type in that zone and
// market, of a quota its market wherever, of addresses its subnet, whatever is launched in it.
func (e *executor) cool(class provider.Class, p plan.Placement, why string) {
	until := e.now().Add(coolFor)
	c := plan.Cooling{Zone: p.Zone, InstanceType: p.InstanceType, Market: p.Market, Until: until, Reason: why}
	switch class {
	case provider.Quota:
		c.Zone, c.InstanceType = "", ""
	case provider.Address:
		c.Subnet, c.InstanceType, c.Market = p.Subnet, "", ""
	case provider.TokenMismatch:
		return // it says nothing of the placement
	}
	e.addCooling(c)
}

// addCooling replaces what is known of the same placement.
func (e *executor) addCooling(c plan.Cooling) {
	e.record.Cooling = slices.DeleteFunc(e.record.Cooling, func(old plan.Cooling) bool {
		old.Until, old.Reason = c.Until, c.Reason
		return old == c
	})
	e.record.Cooling = append(e.record.Cooling, c)
}

// suspect has a zone and type tried last for a while: what went wrong there may go wrong again, whatever the market.
func (e *executor) suspect(p plan.Placement, why string) {
	e.trust(p)
	e.record.Cooling = append(e.record.Cooling, plan.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: e.now().Add(suspectFor), Reason: why, Suspected: true,
	})
}

// trust ends that.
func (e *executor) trust(p plan.Placement) {
	e.record.Cooling = slices.DeleteFunc(e.record.Cooling, func(c plan.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}

// verify looks whether the nodes of launched instances are Ready.
func (e *executor) verify(ctx context.Context) error {
	if e.seen.cluster == nil {
		return nil
	}
	unlabelled, err := e.claimNodes(ctx)
	if err != nil {
		return err
	}
	changed := false
	var failed []string
	for i := range e.record.Action.Slots {
		s := &e.record.Action.Slots[i]
		if s.State != state.SlotLaunched || unlabelled[i] {
			continue
		}
		node := e.seen.node(instanceOf(*e.record.Action, *s))
		listed, there := e.seen.instances[s.InstanceID]
		switch {
		case node != nil && node.Ready:
			e.join(s, node.Object.Name, node.ReadySince)
		case there && listed.State == provider.Leaving, e.seen.gone(s.InstanceID):
			e.fail(s, fmt.Sprintf("instance %s has gone before its node joined", s.InstanceID))
		case e.seen.listErr == nil && e.now().Sub(s.Requested) > e.seen.spec.Join.Timeout:
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
	for i, s := range e.record.Action.Slots {
		if node := e.seen.node(instanceOf(*e.record.Action, s)); s.State == state.SlotLaunched && node != nil {
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
		since = e.seen.at
	}
	s.State, s.Node = state.SlotReady, node
	e.trust(s.Placement)
	r := &e.record
	r.Joins = append(r.Joins, state.Join{Requested: s.Requested, Ready: since})
	r.Joins = r.Joins[max(0, len(r.Joins)-keptJoins):]
	e.event(Event{
		Reason: EventJoined, Instance: s.InstanceID, Node: node, Action: r.Action.ID,
		Message: fmt.Sprintf("Node %s of %s is Ready, %s after it was asked for", node, s.InstanceID, since.Sub(s.Requested).Round(time.Second)),
	})
}

// joinFailed gives an instance up whose node did not join in time. It is kept for a while to be looked at.
func (e *executor) joinFailed(s *state.Slot) {
	now := e.now()
	s.State, s.Error = state.SlotFailed, fmt.Sprintf("its node was not Ready within %s", e.seen.spec.Join.Timeout)
	e.suspect(s.Placement, s.Error)
	e.record.PendingTerminations = append(e.record.PendingTerminations, state.PendingTermination{
		InstanceID: s.InstanceID, Reason: plan.TerminateJoinFailed, Since: now, Due: now.Add(e.seen.spec.Join.KeepFailedFor),
	})
	e.event(Event{
		Reason: EventJoinFailed, Warning: true, Instance: s.InstanceID, Action: e.record.Action.ID,
		Message: fmt.Sprintf("The node of %s was not Ready within %s", s.InstanceID, e.seen.spec.Join.Timeout),
	})
}

// finishUp ends the scale-up once no slot is open. What joined counts; nothing at all is a failure, after which launches
// back off. If the cloud has only had none to give, nothing was lost by asking: it is asked again once that has cooled.
func (e *executor) finishUp(ctx context.Context) error {
	a := e.record.Action
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
	r := &e.record
	if ready > 0 {
		r.Failures = 0
		if swapped > 0 {
			r.LastSwap = e.now()
		}
		if ready > swapped {
			r.LastUp = e.now()
		}
		e.event(Event{Reason: EventScaledUp, Action: a.ID, Message: fmt.Sprintf("%d of %d nodes joined%s", ready, len(a.Slots), because(failed))})
	} else {
		if !refused {
			r.FailedAt, r.Failures = e.now(), r.Failures+1
		}
		e.event(Event{Reason: EventScaleUpFailed, Warning: true, Action: a.ID, Message: fmt.Sprintf("None of %d nodes joined%s", len(a.Slots), because(failed))})
	}
	r.Action = nil
	return e.save(ctx)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
