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
	// maxReplacements is how many slots may follow each other where no placement is used up by that.
	maxReplacements = 3
	// keptJoins is how many measured launches are remembered: as many as the estimate needs to get from the default to any
	// value that is likely.
	keptJoins = 20
)

// begin puts an action into the journal, before anything of it is done.
func (t *tick) begin(ctx context.Context) error {
	if t.grows() {
		if err := t.extendUp(ctx); err != nil {
			return err
		}
		return t.advanceAction(ctx)
	}
	if t.record.Action != nil || t.snapshot.State.Action != "" {
		return nil // an action that ended in this tick has changed what the decision was made from
	}
	switch t.decision.Step {
	case plan.ScaleUp:
		if err := t.beginUp(ctx); err != nil {
			return err
		}
		return t.advanceAction(ctx)
	case plan.ScaleDown:
		if err := t.beginDown(ctx); err != nil {
			return err
		}
		return t.advanceAction(ctx)
	}
	return nil
}

func (t *tick) beginUp(ctx context.Context) error {
	a := t.newAction("up", plan.ActionUp)
	t.addPlaced(a)
	t.record.Action = a
	replaced := 0
	for i := range t.record.Interruptions {
		if r := &t.record.Interruptions[i]; !r.Replaced && replaced < len(a.Slots) {
			r.Replaced = true
			replaced++
		}
	}
	t.event(Event{Reason: EventScaleUpStarted, Message: t.decision.Message, Action: a.ID})
	return t.save(ctx)
}

// grows tells whether the decision adds to the scale-up that is open, and was when it was made.
func (t *tick) grows() bool {
	a := t.record.Action
	return a != nil && a.Kind == plan.ActionUp && a.ID == t.snapshot.State.ActionID && t.decision.Step == plan.ScaleUp && !t.decision.Urgent
}

// extendUp puts further nodes into the open scale-up.
func (t *tick) extendUp(ctx context.Context) error {
	t.addPlaced(t.record.Action)
	t.event(Event{Reason: EventScaleUpExtended, Message: t.decision.Message, Action: t.record.Action.ID})
	return t.save(ctx)
}

func (t *tick) newAction(kind string, k plan.ActionKind) *state.Action {
	return &state.Action{ID: t.newID(kind), Kind: k, Reason: t.decision.Reason, Message: t.decision.Message, Started: t.options.Now()}
}

// addPlaced adds a slot for each node that was decided on.
func (t *tick) addPlaced(a *state.Action) {
	for i, p := range t.decision.Placements {
		addSlot(a, p, nil, i < t.decision.Pinned)
	}
}

func addSlot(a *state.Action, p plan.Placement, replaces *int, pinned bool) {
	n := len(a.Slots)
	a.Slots = append(a.Slots, state.Slot{
		Number: n, Placement: p, Token: token(a.ID, n), Replaces: replaces, Pinned: pinned, State: state.SlotPlanned,
	})
}

// advanceAction goes on with the open action.
func (t *tick) advanceAction(ctx context.Context) error {
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
func (t *tick) advanceUp(ctx context.Context, a *state.Action) error {
	if err := t.adopt(ctx, a); err != nil {
		return err
	}
	if t.spec.Plan.Deleting {
		if err := t.verify(ctx); err != nil {
			return err
		}
		return t.endUp(ctx)
	}
	// Launches may add slots that take the place of failed ones.
	for i := 0; i < len(t.record.Action.Slots); i++ {
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
func (t *tick) adopt(ctx context.Context, a *state.Action) error {
	adopted := false
	for _, i := range inOrder(t.instances) {
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
func (t *tick) launched(s *state.Slot, i provider.Instance) {
	s.State, s.InstanceID, s.ProviderID, s.Error = state.SlotLaunched, i.ID, i.ProviderID, ""
	if s.Requested.IsZero() {
		s.Requested = t.options.Now()
	}
	t.event(Event{
		Reason: EventLaunched, Instance: i.ID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("Launched %s: %s %s in %s", i.ID, s.Market, s.InstanceType, s.Zone),
	})
}

// launch tries one planned slot.
func (t *tick) launch(ctx context.Context, at int) error {
	a := t.record.Action
	s := &a.Slots[at]
	now := t.options.Now()
	switch {
	case now.Before(s.NotBefore):
		return nil
	case now.Sub(a.Started) > t.spec.Join.Timeout:
		t.fail(s, fmt.Sprintf("no instance in %s: %s", t.spec.Join.Timeout, s.Error))
		return t.save(ctx)
	}
	if s.Requested.IsZero() {
		s.Requested = now
	}
	i, err := t.act.launch(ctx, provider.Launch{Action: a.ID, Slot: s.Number, Token: s.Token, Placement: s.Placement})
	if err == nil {
		t.launched(s, i)
		t.sightings[i.ID] = &sighting{instance: i, missing: t.now}
		return t.save(ctx)
	}
	if t.act.left() <= 0 || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errStop, err)
	}
	return t.launchFailed(ctx, at, err)
}

// launchFailed decides what an error means: definitive ones fail the slot and another takes its place, others have the same
// launch tried again, as nobody knows whether it has happened.
func (t *tick) launchFailed(ctx context.Context, at int, err error) error {
	a := t.record.Action
	s := &a.Slots[at]
	now := t.options.Now()
	switch class := provider.ClassOf(err); {
	case class == provider.Unknown, class == provider.Throttled, class == provider.TokenMismatch && now.Sub(s.Requested) < t.options.VanishGrace:
		// After a mismatch the token may have launched an instance with other parameters, that is not listed yet.
		s.Tries++
		s.NotBefore, s.Error = now.Add(t.backoff(s.Tries, retryMin, retryMax)), err.Error()
		t.errs = append(t.errs, fmt.Errorf("launch slot %d of %s: %w", s.Number, a.ID, err))
	case class == provider.Capacity, class == provider.Quota, class == provider.Address, class == provider.TokenMismatch:
		t.fail(s, err.Error())
		s.Refused = class != provider.TokenMismatch
		t.cool(class, s.Placement, err.Error())
		t.replace(at, class)
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
func (t *tick) fail(s *state.Slot, why string) {
	s.State, s.Error = state.SlotFailed, why
	t.event(Event{
		Reason: EventLaunchFailed, Warning: true, Instance: s.InstanceID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("Slot %d, %s %s in %s: %s", s.Number, s.Market, s.InstanceType, s.Zone, why),
	})
}

// cool keeps placements from being tried that would fail for the same reason: of capacity that type in that zone and
// market, of a quota its market wherever, of addresses its subnet, whatever is launched in it.
func (t *tick) cool(class provider.Class, p plan.Placement, why string) {
	until := t.options.Now().Add(coolFor)
	c := plan.Cooling{Zone: p.Zone, InstanceType: p.InstanceType, Market: p.Market, Until: until, Reason: why}
	switch class {
	case provider.Quota:
		c.Zone, c.InstanceType = "", ""
	case provider.Address:
		c.Subnet, c.InstanceType, c.Market = p.Subnet, "", ""
	case provider.TokenMismatch:
		return // it says nothing of the placement
	}
	t.record.Cooling = slices.DeleteFunc(t.record.Cooling, func(old plan.Cooling) bool {
		old.Until, old.Reason = c.Until, c.Reason
		return old == c
	})
	t.record.Cooling = append(t.record.Cooling, c)
}

// suspect has a zone and type tried last for a while: what went wrong there may go wrong again, whatever the market.
func (t *tick) suspect(p plan.Placement, why string) {
	t.trust(p)
	t.record.Cooling = append(t.record.Cooling, plan.Cooling{
		Zone: p.Zone, InstanceType: p.InstanceType, Until: t.options.Now().Add(suspectFor), Reason: why, Suspected: true,
	})
}

// trust ends that.
func (t *tick) trust(p plan.Placement) {
	t.record.Cooling = slices.DeleteFunc(t.record.Cooling, func(c plan.Cooling) bool {
		return c.Suspected && c.Zone == p.Zone && c.InstanceType == p.InstanceType
	})
}

// replace adds a slot, with a token of its own, in place of one that has failed, if there is anywhere left to launch.
func (t *tick) replace(at int, class provider.Class) {
	a := t.record.Action
	failed := a.Slots[at]
	tried := []plan.Placement{failed.Placement}
	for before := failed.Replaces; before != nil; before = a.Slots[*before].Replaces {
		tried = append(tried, a.Slots[*before].Placement)
	}
	if class == provider.TokenMismatch {
		if len(tried) <= maxReplacements {
			addSlot(a, failed.Placement, &failed.Number, failed.Pinned)
		}
		return
	}
	for _, p := range plan.Instead(t.placing(), failed.Placement, failed.Pinned, tried...) {
		addSlot(a, p, &failed.Number, failed.Pinned)
	}
}

// placing is the snapshot with what has been planned and has failed since it was made.
func (t *tick) placing() plan.Snapshot {
	s := t.snapshot
	s.State.Cooling = t.record.Cooling
	s.Workers = slices.Clone(s.Workers)
	for _, slot := range t.record.Action.Slots {
		counted := slices.ContainsFunc(s.Workers, func(w plan.Worker) bool { return slot.InstanceID != "" && w.InstanceID == slot.InstanceID })
		if slot.State != state.SlotFailed && !counted {
			s.Workers = append(s.Workers, plan.Worker{InstanceID: slot.InstanceID, Placement: slot.Placement})
		}
	}
	return s
}

// verify looks whether the nodes of launched instances are Ready.
func (t *tick) verify(ctx context.Context) error {
	if t.cluster == nil {
		return nil
	}
	changed := false
	var failed []string
	for i := range t.record.Action.Slots {
		s := &t.record.Action.Slots[i]
		if s.State != state.SlotLaunched {
			continue
		}
		node := t.node(instanceOf(*t.record.Action, *s))
		listed, there := t.instances[s.InstanceID]
		if err := t.claim(ctx, node); err != nil {
			if err := t.carryOn(ctx, err); err != nil {
				return err
			}
			continue
		}
		switch {
		case node != nil && node.Ready:
			t.join(s, node.Object.Name, node.ReadySince)
		case there && listed.State == provider.Leaving, t.gone(s.InstanceID):
			t.fail(s, fmt.Sprintf("instance %s has gone before its node joined", s.InstanceID))
		case t.listErr == nil && t.options.Now().Sub(s.Requested) > t.spec.Join.Timeout:
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
func (t *tick) join(s *state.Slot, node string, since time.Time) {
	if since.IsZero() || since.Before(s.Requested) {
		since = t.now
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
func (t *tick) joinFailed(s *state.Slot) {
	now := t.options.Now()
	s.State, s.Error = state.SlotFailed, fmt.Sprintf("its node was not Ready within %s", t.spec.Join.Timeout)
	t.suspect(s.Placement, s.Error)
	t.record.Condemned = append(t.record.Condemned, state.Condemned{
		InstanceID: s.InstanceID, Reason: condemnedJoinFailed, Since: now, Due: now.Add(t.spec.Join.KeepFailedFor),
	})
	t.event(Event{
		Reason: EventJoinFailed, Warning: true, Instance: s.InstanceID, Action: t.record.Action.ID,
		Message: fmt.Sprintf("The node of %s was not Ready within %s", s.InstanceID, t.spec.Join.Timeout),
	})
}

// finishUp ends the scale-up once no slot is open. What joined counts; nothing at all is a failure, after which launches
// back off. If the cloud has only had none to give, nothing was lost by asking: it is asked again once that has cooled.
func (t *tick) finishUp(ctx context.Context) error {
	a := t.record.Action
	ready, refused, failed := 0, true, ""
	for _, s := range a.Slots {
		switch s.State {
		case state.SlotReady:
			ready++
		case state.SlotFailed:
			failed = s.Error
			refused = refused && s.Refused
		default:
			return nil
		}
	}
	r := &t.record
	if ready > 0 {
		r.LastUp, r.Failures = t.options.Now(), 0
		t.event(Event{Reason: EventScaledUp, Action: a.ID, Message: fmt.Sprintf("%d of %d nodes joined%s", ready, desired(a), because(failed))})
	} else {
		if !refused {
			r.FailedAt, r.Failures = t.options.Now(), r.Failures+1
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
