package act

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// maxSlots bounds the slots of a scale-up, including replacements of interrupted instances.
const maxSlots = 2 * plan.MaxBatch

// Commit updates a record with the decisions about instances and about the open action. It returns
// their events, and whether the record has changed and must be saved before anything is done.
// Launches and removals come later: see [openAction.begin].
func Commit(r *state.Record, d plan.Decision, now time.Time) (events []journal.Event, changed bool) {
	n := &commit{record: r, decision: d, now: now}
	for _, note := range []func() bool{
		n.noteInterruptions, n.noteRepairs, n.noteSubstitutes, n.noteGivenUp, n.noteTerminations,
	} {
		changed = note() || changed
	}
	return n.events, changed
}

// commit holds the input and output of one call of [Commit].
type commit struct {
	record   *state.Record
	decision plan.Decision
	now      time.Time
	events   []journal.Event
}

func (n *commit) event(e journal.Event) { n.events = append(n.events, e) }

// noteInterruptions records instances that the cloud reclaims.
func (n *commit) noteInterruptions() bool {
	list := n.decision.Interruptions
	for _, x := range list {
		r := state.Removal{
			InstanceID: x.InstanceID, ProviderID: x.ProviderID, Zone: x.Zone, Node: x.Node,
			State: state.RemovalPlanned, Since: n.now, Deadline: x.Deadline, ReplacementSettled: x.ReplacementSettled,
		}
		if in := n.record.Target(x.InstanceID); in != nil {
			in.State, in.Since, in.Error = state.RemovalFailed, r.Since, "the cloud reclaims the instance"
		}
		if in := n.record.Repair(x.InstanceID); in != nil {
			r.ReplacementSettled = in.ReplacementSettled
			n.record.Repairs = slices.DeleteFunc(n.record.Repairs,
				func(other state.Removal) bool { return other.InstanceID == x.InstanceID })
		}
		n.record.Interruptions = append(n.record.Interruptions, r)
		n.event(journal.Event{Reason: journal.EventInterrupted, Warning: true, Instance: x.InstanceID,
			Node: x.Node, Message: x.Message})
	}
	for _, c := range n.decision.Cooling {
		addCooling(n.record, c)
	}
	slices.SortStableFunc(n.record.Interruptions, func(a, b state.Removal) int { return a.Deadline.Compare(b.Deadline) })
	return len(list) > 0
}

// noteRepairs records workers that are removed because their Nodes are unhealthy.
func (n *commit) noteRepairs() bool {
	list := n.decision.Repairs
	for _, x := range list {
		n.record.Repairs = append(n.record.Repairs, state.Removal{
			InstanceID: x.InstanceID, ProviderID: x.ProviderID, Zone: x.Zone, Node: x.Node,
			State: state.RemovalPlanned, Since: n.now, ReplacementSettled: x.ReplacementSettled,
		})
		n.event(journal.Event{Reason: journal.EventRepairStarted, Warning: true, Instance: x.InstanceID,
			Node: x.Node, Message: x.Message})
	}
	return len(list) > 0
}

// noteSubstitutes adds slots to the open scale-up, in place of lost ones and of instances that the
// cloud reclaims.
func (n *commit) noteSubstitutes() bool {
	d := n.decision
	a := n.record.Action
	if a == nil || a.Kind != state.ActionUp {
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
		r := cmp.Or(n.record.Interruption(x.InstanceID), n.record.Repair(x.InstanceID))
		if r == nil || len(a.Slots) >= maxSlots {
			continue
		}
		addSlot(a, x.Placement, state.Slot{Alternatives: x.Alternatives})
		r.ReplacementSettled, changed = true, true
		n.event(journal.Event{
			Reason: journal.EventReplacement, Instance: r.InstanceID, Node: r.Node, Action: a.ID,
			Message: fmt.Sprintf("Slot %d replaces %s: %s %s in %s", len(a.Slots)-1, r.InstanceID,
				x.Market, x.InstanceType, x.Zone),
		})
	}
	var added []*state.Slot
	for _, s := range d.Substitutes {
		added = append(added, &a.Slots[s.Slot])
	}
	for i := before; i < len(a.Slots); i++ {
		added = append(added, &a.Slots[i])
	}
	joinLaunches(a, added)
	return changed
}

// noteGivenUp makes the terminations of instances that did not join and are kept for inspection due
// now, because their capacity is needed.
func (n *commit) noteGivenUp() bool {
	ended := false
	for _, id := range n.decision.GiveUp {
		if c := n.record.PendingTermination(id); c != nil && n.decision.At.Before(c.Due) {
			c.Due, ended = n.decision.At, true
			n.event(journal.Event{Reason: journal.EventGivenUp, Instance: id,
				Message: fmt.Sprintf("%s, which did not join, is no longer kept: its place is needed", id)})
		}
	}
	return ended
}

func (n *commit) noteTerminations() bool {
	list := n.decision.Upkeep.New
	for _, c := range list {
		n.record.PendingTerminations = append(n.record.PendingTerminations, c.PendingTermination)
		n.event(journal.Event{Reason: journal.EventOrphan, Warning: true, Instance: c.InstanceID,
			Action: c.Action, Message: c.Message})
	}
	return len(list) > 0
}
