package act

import (
	"context"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// openAction begins actions and continues the open one.
type openAction struct {
	c    *cycle
	up   scaleUp
	down scaleDown
}

// begin records a new action, or more nodes in the open scale-up, and starts it. It runs after open
// work has been continued: an action that ended in this cycle has invalidated the input of the
// decision. An urgent launch during an open scale-down begins once that has been given up.
func (o openAction) begin(ctx context.Context) error {
	a, was, d := o.c.record.Action, o.c.snapshot.Record, o.c.decision
	switch {
	case a != nil && a.Kind == state.ActionUp && a.ID == was.ActionID() && d.Step == plan.ScaleUp && !d.Urgent:
		o.addPlaced(a)
		o.noteAttempts()
		o.c.event(journal.Event{Reason: journal.EventScaleUpExtended, Message: d.Message, Action: a.ID})
	case a != nil || was.Action != nil || d.Step == plan.Hold:
		return nil
	case d.Step == plan.ScaleUp:
		o.beginUp()
	default:
		o.beginDown()
	}
	o.c.record.WorkersBeforeRollout = d.WorkersBeforeRollout
	if err := o.c.save(ctx); err != nil {
		return err
	}
	return o.advance(ctx)
}

func (o openAction) beginUp() {
	a := o.newAction("up", state.ActionUp)
	o.addPlaced(a)
	o.noteAttempts()
	o.c.record.Action = a
	replaced := 0
	for _, list := range [][]state.Removal{o.c.record.Interruptions, o.c.record.Repairs} {
		for i := range list {
			if r := &list[i]; !r.ReplacementSettled && replaced < len(a.Slots) {
				r.ReplacementSettled = true
				replaced++
			}
		}
	}
	o.c.event(journal.Event{Reason: journal.EventScaleUpStarted, Message: o.c.decision.Message, Action: a.ID})
}

func (o openAction) beginDown() {
	a := o.newAction("down", state.ActionDown)
	for _, target := range o.c.decision.Targets {
		a.Targets = append(a.Targets, state.Removal{
			InstanceID: target.InstanceID, ProviderID: o.c.seen.Known[target.InstanceID].ProviderID,
			Node: target.Node, Zone: target.Zone, State: state.RemovalPlanned, Since: a.Started,
		})
	}
	o.c.record.Action = a
	if !plan.MustGo(a.Reason) {
		var nodes []string
		for _, r := range a.Targets {
			nodes = append(nodes, r.Node)
		}
		o.c.record.Saved = &state.Saving{Began: a.Started, Owners: forecast.OwnersOn(o.c.seen, nodes)}
	}
	o.c.event(journal.Event{Reason: journal.EventScaleDownStarted, Message: o.c.decision.Message, Action: a.ID})
}

func (o openAction) newAction(kind string, k state.ActionKind) *state.Action {
	return &state.Action{ID: o.c.journal.NewID(kind), Kind: k, Reason: o.c.decision.Reason,
		Message: o.c.decision.Message, Started: o.c.now()}
}

// addPlaced adds a slot for each node of the decision.
func (o openAction) addPlaced(a *state.Action) {
	before := len(a.Slots)
	for i, p := range o.c.decision.Placements {
		like := state.Slot{Pinned: i < o.c.decision.Pinned, Outdated: o.c.decision.Reason == plan.Outdated}
		if i < len(o.c.decision.Alternatives) {
			like.Alternatives = o.c.decision.Alternatives[i]
		}
		addSlot(a, p, like)
	}
	var added []*state.Slot
	for i := before; i < len(a.Slots); i++ {
		added = append(added, &a.Slots[i])
	}
	joinLaunches(a, added)
}

// advance continues the open action.
func (o openAction) advance(ctx context.Context) error {
	switch a := o.c.record.Action; {
	case a == nil:
		return nil
	case a.Kind == state.ActionUp:
		return o.up.advance(ctx, a)
	default:
		return o.down.advance(ctx)
	}
}

// addSlot adds a slot with the purpose and the alternatives of like. It has no token yet.
func addSlot(a *state.Action, p fleet.Placement, like state.Slot) {
	n := len(a.Slots)
	a.Slots = append(a.Slots, state.Slot{
		Number: n, Placement: p, Alternatives: like.Alternatives,
		Pinned: like.Pinned, Outdated: like.Outdated, State: state.SlotPlanned,
	})
}

// planAgain replaces a lost slot by its substitute. What the slot was before need not be recorded,
// because a placement that was refused cools. The slot has no token yet.
func planAgain(a *state.Action, s plan.Substitute) {
	old := a.Slots[s.Slot]
	a.Slots[s.Slot] = state.Slot{
		Number: old.Number, Placement: s.Placement, Alternatives: s.Alternatives,
		Attempt: old.Attempt + 1, Pinned: old.Pinned, Outdated: old.Outdated, State: state.SlotPlanned,
	}
}

// noteAttempts records the pods for which a launch is made.
func (o openAction) noteAttempts() {
	if list, begun := o.c.forecast.BegunAttempts(o.c.now()); begun {
		o.c.record.Attempts = list
	}
	o.c.forecast.NoteFutileRemovals(o.c.record, o.c.now())
}
