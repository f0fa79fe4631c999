package nodepool

import (
	"context"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// commit writes down, in one write and before anything of it is done, what was decided about instances and about the open action.
// What is in the journal is what the decision was made from: nothing has been done in between. Launches and removals come later: see
// [cycle.begin].
func (t *cycle) commit(ctx context.Context) error {
	d := t.decision
	changed := t.noteInterruptions(d.Interruptions)
	changed = t.noteSubstitutes(d) || changed
	changed = t.noteGivenUp(d.GiveUp) || changed
	changed = t.noteCondemned(d.Upkeep.Condemn) || changed
	if !changed {
		return nil
	}
	return t.save(ctx)
}

// noteInterruptions notes instances that the cloud takes back.
func (t *cycle) noteInterruptions(list []plan.Interruption) bool {
	for _, x := range list {
		r := state.Removal{
			InstanceID: x.InstanceID, ProviderID: x.ProviderID, Zone: x.Zone, Node: x.Node,
			State: state.RemovalPlanned, Since: t.now(), Deadline: x.Deadline, Replaced: x.Replaced,
		}
		if in := target(t.record, x.InstanceID); in != nil {
			in.State, in.Since, in.Error = state.RemovalFailed, r.Since, "the cloud reclaims the instance"
		}
		if p := t.seen.known[x.InstanceID].instance.Placement; p.Market == plan.Spot {
			t.coolFor(p, "the cloud reclaims "+x.InstanceID) // its replacement would be the next to go
		}
		t.record.Interruptions = append(t.record.Interruptions, r)
		t.event(Event{Reason: EventInterrupted, Warning: true, Instance: x.InstanceID, Node: x.Node, Message: x.Message})
	}
	slices.SortStableFunc(t.record.Interruptions, func(a, b state.Removal) int { return a.Deadline.Compare(b.Deadline) })
	return len(list) > 0
}

// noteSubstitutes adds slots to the open scale-up, in the place of lost ones and of instances that the cloud takes back.
func (t *cycle) noteSubstitutes(d plan.Decision) bool {
	a := t.record.Action
	if a == nil || a.Kind != plan.ActionUp {
		return false
	}
	changed := false
	for i := range a.Slots {
		if a.Slots[i].Lost {
			a.Slots[i].Lost, changed = false, true
		}
	}
	for _, s := range d.Substitutes {
		like := a.Slots[s.Slot]
		like.Replaces = &s.Slot
		addSlot(a, s.Placement, like)
	}
	for _, x := range d.Replacements {
		r := interruption(t.record, x.InstanceID)
		if r == nil {
			continue
		}
		addSlot(a, x.Placement, state.Slot{})
		r.Replaced, changed = true, true
		t.event(Event{
			Reason: EventReplacement, Instance: r.InstanceID, Node: r.Node, Action: a.ID,
			Message: fmt.Sprintf("Slot %d takes the place of %s: %s %s in %s", len(a.Slots)-1, r.InstanceID, x.Market, x.InstanceType, x.Zone),
		})
	}
	return changed
}

// noteGivenUp ends the time for which instances that did not join are kept to be looked at, as their place is needed.
func (t *cycle) noteGivenUp(list []string) bool {
	ended := false
	for _, id := range list {
		if c := condemned(t.record, id); c != nil && t.seen.at.Before(c.Due) {
			c.Due, ended = t.seen.at, true
			t.event(Event{Reason: EventGivenUp, Instance: id, Message: fmt.Sprintf("The place of %s, which did not join, is needed: it is not kept any longer", id)})
		}
	}
	return ended
}

func (t *cycle) noteCondemned(list []plan.Condemned) bool {
	for _, c := range list {
		t.record.Condemned = append(t.record.Condemned, state.Condemned{InstanceID: c.InstanceID, Reason: c.Reason, Since: t.seen.at, Due: c.Due})
		t.event(Event{Reason: EventOrphan, Warning: true, Instance: c.InstanceID, Action: c.Action, Message: c.Message})
	}
	return len(list) > 0
}

// begin writes down a new action, or more nodes in the open scale-up, and begins with it. It comes after what is open has gone on: an
// action that ended in this cycle has changed what the decision was made from. An urgent launch beside an open scale-down begins
// once that is given up.
func (t *cycle) begin(ctx context.Context) error {
	a, was, d := t.record.Action, t.snapshot.State, t.decision
	switch {
	case a != nil && a.Kind == plan.ActionUp && a.ID == was.ActionID && d.Step == plan.ScaleUp && !d.Urgent:
		t.addPlaced(a)
		t.event(Event{Reason: EventScaleUpExtended, Message: d.Message, Action: a.ID})
	case a != nil || was.Action != "" || d.Step == plan.Hold:
		return nil
	case d.Step == plan.ScaleUp:
		t.beginUp()
	default:
		t.beginDown()
	}
	t.record.Replacing = d.Replacing
	if err := t.save(ctx); err != nil {
		return err
	}
	return t.advanceAction(ctx)
}

func (t *cycle) beginUp() {
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
}

func (t *cycle) beginDown() {
	a := t.newAction("down", plan.ActionDown)
	for _, target := range t.decision.Targets {
		a.Targets = append(a.Targets, state.Removal{
			InstanceID: target.InstanceID, ProviderID: t.seen.known[target.InstanceID].instance.ProviderID,
			Node: target.Node, Zone: target.Zone, State: state.RemovalPlanned, Since: a.Started,
		})
	}
	t.record.Action = a
	t.event(Event{Reason: EventScaleDownStarted, Message: t.decision.Message, Action: a.ID})
}

func (t *cycle) newAction(kind string, k plan.ActionKind) *state.Action {
	return &state.Action{ID: t.newID(kind), Kind: k, Reason: t.decision.Reason, Message: t.decision.Message, Started: t.now()}
}

// addPlaced adds a slot for each node that was decided on.
func (t *cycle) addPlaced(a *state.Action) {
	for i, p := range t.decision.Placements {
		addSlot(a, p, state.Slot{Pinned: i < t.decision.Pinned, Outdated: t.decision.Reason == plan.Outdated})
	}
}

// addSlot adds a slot that is to be as another in what it is for.
func addSlot(a *state.Action, p plan.Placement, like state.Slot) {
	n := len(a.Slots)
	a.Slots = append(a.Slots, state.Slot{
		Number: n, Placement: p, Token: token(a.ID, n), Replaces: like.Replaces, Pinned: like.Pinned, Outdated: like.Outdated, State: state.SlotPlanned,
	})
}

// coolFor keeps a placement from being tried for a while.
func (t *cycle) coolFor(p plan.Placement, why string) {
	t.addCooling(plan.Cooling{Zone: p.Zone, InstanceType: p.InstanceType, Market: p.Market, Until: t.now().Add(coolFor), Reason: why})
}
