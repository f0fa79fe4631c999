package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// commit writes down, in one write and before anything of it is done, what was decided about instances and about the open action.
// What is in the journal is what the decision was made from: nothing has been done in between. Launches and removals come later: see
// [cycle.begin].
func (e *executor) commit(ctx context.Context) error {
	d := e.decision
	changed := e.noteInterruptions(d.Interruptions)
	changed = e.noteRepairs(d.Repairs) || changed
	changed = e.noteSubstitutes(d) || changed
	changed = e.noteGivenUp(d.GiveUp) || changed
	changed = e.noteTerminations(d.Upkeep.New) || changed
	if !changed {
		return nil
	}
	return e.save(ctx)
}

// noteInterruptions notes instances that the cloud takes back.
func (e *executor) noteInterruptions(list []plan.Interruption) bool {
	for _, x := range list {
		r := state.Removal{
			InstanceID: x.InstanceID, ProviderID: x.ProviderID, Zone: x.Zone, Node: x.Node,
			State: state.RemovalPlanned, Since: e.Now(), Deadline: x.Deadline, Replaced: x.Replaced,
		}
		if in := e.Record.Target(x.InstanceID); in != nil {
			in.State, in.Since, in.Error = state.RemovalFailed, r.Since, "the cloud reclaims the instance"
		}
		if in := e.Record.Repair(x.InstanceID); in != nil {
			r.Replaced = in.Replaced
			e.Record.Repairs = slices.DeleteFunc(e.Record.Repairs, func(other state.Removal) bool { return other.InstanceID == x.InstanceID })
		}
		e.Record.Interruptions = append(e.Record.Interruptions, r)
		e.Event(journal.Event{Reason: journal.EventInterrupted, Warning: true, Instance: x.InstanceID, Node: x.Node, Message: x.Message})
	}
	for _, c := range e.decision.Cooling {
		e.addCooling(c)
	}
	slices.SortStableFunc(e.Record.Interruptions, func(a, b state.Removal) int { return a.Deadline.Compare(b.Deadline) })
	return len(list) > 0
}

// noteRepairs notes workers that are removed as their Nodes are unhealthy.
func (e *executor) noteRepairs(list []plan.NodeRepair) bool {
	for _, x := range list {
		e.Record.Repairs = append(e.Record.Repairs, state.Removal{
			InstanceID: x.InstanceID, ProviderID: x.ProviderID, Zone: x.Zone, Node: x.Node,
			State: state.RemovalPlanned, Since: e.Now(), Replaced: x.Replaced,
		})
		e.Event(journal.Event{Reason: journal.EventRepairStarted, Warning: true, Instance: x.InstanceID, Node: x.Node, Message: x.Message})
	}
	return len(list) > 0
}

// noteSubstitutes adds slots to the open scale-up, in the place of lost ones and of instances that the cloud takes back.
func (e *executor) noteSubstitutes(d plan.Decision) bool {
	a := e.Record.Action
	if a == nil || a.Kind != plan.ActionUp {
		return false
	}
	changed := false
	for i := range a.Slots {
		if a.Slots[i].Lost {
			a.Slots[i].Lost, changed = false, true
		}
	}
	before := len(a.Slots)
	for _, s := range d.Substitutes {
		planAgain(a, s)
	}
	for _, x := range d.Replacements {
		r := cmp.Or(e.Record.Interruption(x.InstanceID), e.Record.Repair(x.InstanceID))
		if r == nil || len(a.Slots) >= maxSlots {
			continue
		}
		addSlot(a, x.Placement, state.Slot{Alternatives: x.Alternatives})
		r.Replaced, changed = true, true
		e.Event(journal.Event{
			Reason: journal.EventReplacement, Instance: r.InstanceID, Node: r.Node, Action: a.ID,
			Message: fmt.Sprintf("Slot %d takes the place of %s: %s %s in %s", len(a.Slots)-1, r.InstanceID, x.Market, x.InstanceType, x.Zone),
		})
	}
	var fresh []*state.Slot
	for _, s := range d.Substitutes {
		fresh = append(fresh, &a.Slots[s.Slot])
	}
	for i := before; i < len(a.Slots); i++ {
		fresh = append(fresh, &a.Slots[i])
	}
	joinLaunches(a, fresh)
	return changed
}

// noteGivenUp ends the time for which instances that did not join are kept to be looked at, as their place is needed.
func (e *executor) noteGivenUp(list []string) bool {
	ended := false
	for _, id := range list {
		if c := e.Record.PendingTermination(id); c != nil && e.seen.At.Before(c.Due) {
			c.Due, ended = e.seen.At, true
			e.Event(journal.Event{Reason: journal.EventGivenUp, Instance: id, Message: fmt.Sprintf("The place of %s, which did not join, is needed: it is not kept any longer", id)})
		}
	}
	return ended
}

func (e *executor) noteTerminations(list []plan.PendingTermination) bool {
	for _, c := range list {
		e.Record.PendingTerminations = append(e.Record.PendingTerminations, state.PendingTermination{InstanceID: c.InstanceID, Reason: c.Reason, Since: e.seen.At, Due: c.Due})
		e.Event(journal.Event{Reason: journal.EventOrphan, Warning: true, Instance: c.InstanceID, Action: c.Action, Message: c.Message})
	}
	return len(list) > 0
}

// begin writes down a new action, or more nodes in the open scale-up, and begins with it. It comes after what is open has gone on: an
// action that ended in this cycle has changed what the decision was made from. An urgent launch beside an open scale-down begins
// once that is given up.
func (e *executor) begin(ctx context.Context) error {
	a, was, d := e.Record.Action, e.snapshot.State, e.decision
	switch {
	case a != nil && a.Kind == plan.ActionUp && a.ID == was.ActionID && d.Step == plan.ScaleUp && !d.Urgent:
		e.addPlaced(a)
		e.noteAttempts()
		e.Event(journal.Event{Reason: journal.EventScaleUpExtended, Message: d.Message, Action: a.ID})
	case a != nil || was.Action != "" || d.Step == plan.Hold:
		return nil
	case d.Step == plan.ScaleUp:
		e.beginUp()
	default:
		e.beginDown()
	}
	e.Record.Replacing = d.Replacing
	if err := e.save(ctx); err != nil {
		return err
	}
	return e.advanceAction(ctx)
}

func (e *executor) beginUp() {
	a := e.newAction("up", plan.ActionUp)
	e.addPlaced(a)
	e.noteAttempts()
	e.Record.Action = a
	replaced := 0
	for _, list := range [][]state.Removal{e.Record.Interruptions, e.Record.Repairs} {
		for i := range list {
			if r := &list[i]; !r.Replaced && replaced < len(a.Slots) {
				r.Replaced = true
				replaced++
			}
		}
	}
	e.Event(journal.Event{Reason: journal.EventScaleUpStarted, Message: e.decision.Message, Action: a.ID})
}

func (e *executor) beginDown() {
	a := e.newAction("down", plan.ActionDown)
	for _, target := range e.decision.Targets {
		a.Targets = append(a.Targets, state.Removal{
			InstanceID: target.InstanceID, ProviderID: e.seen.Known[target.InstanceID].Instance.ProviderID,
			Node: target.Node, Zone: target.Zone, State: state.RemovalPlanned, Since: a.Started,
		})
	}
	e.Record.Action = a
	e.Event(journal.Event{Reason: journal.EventScaleDownStarted, Message: e.decision.Message, Action: a.ID})
}

func (e *executor) newAction(kind string, k plan.ActionKind) *state.Action {
	return &state.Action{ID: e.NewID(kind), Kind: k, Reason: e.decision.Reason, Message: e.decision.Message, Started: e.Now()}
}

// addPlaced adds a slot for each node that was decided on.
func (e *executor) addPlaced(a *state.Action) {
	before := len(a.Slots)
	for i, p := range e.decision.Placements {
		like := state.Slot{Pinned: i < e.decision.Pinned, Outdated: e.decision.Reason == plan.Outdated}
		if i < len(e.decision.Alternatives) {
			like.Alternatives = e.decision.Alternatives[i]
		}
		addSlot(a, p, like)
	}
	var fresh []*state.Slot
	for i := before; i < len(a.Slots); i++ {
		fresh = append(fresh, &a.Slots[i])
	}
	joinLaunches(a, fresh)
}

// maxSlots bounds the slots of a scale-up, the replacements of interrupted instances included.
const maxSlots = 2 * plan.MaxBatch

// addSlot adds a slot with the purpose and the alternatives of another. It has no token yet.
func addSlot(a *state.Action, p fleet.Placement, like state.Slot) {
	n := len(a.Slots)
	a.Slots = append(a.Slots, state.Slot{
		Number: n, Placement: p, Alternatives: like.Alternatives,
		Pinned: like.Pinned, Outdated: like.Outdated, State: state.SlotPlanned,
	})
}

// planAgain plans the launch of a slot that was lost as something else. No process needs what the slot was before, as a
// placement that was refused cools. It has no token yet.
func planAgain(a *state.Action, s plan.Substitute) {
	old := a.Slots[s.Slot]
	a.Slots[s.Slot] = state.Slot{
		Number: old.Number, Placement: s.Placement, Alternatives: s.Alternatives,
		Attempt: old.Attempt + 1, Pinned: old.Pinned, Outdated: old.Outdated, State: state.SlotPlanned,
	}
}
