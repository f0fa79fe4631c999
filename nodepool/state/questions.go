package state

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"
)

// Open reports whether anything in the record waits for its next step.
func (r Record) Open() bool {
	open := func(x Removal) bool { return !x.Done() }
	return r.Action != nil || slices.ContainsFunc(r.Interruptions, open) || slices.ContainsFunc(r.Repairs, open)
}

// ActionKind returns the kind of the open action, "" if there is none.
func (r Record) ActionKind() ActionKind {
	if r.Action == nil {
		return ""
	}
	return r.Action.Kind
}

// ActionID returns the id of the open action, "" if there is none.
func (r Record) ActionID() string {
	if r.Action == nil {
		return ""
	}
	return r.Action.ID
}

// PlannedAt returns the placements of nodes that the open scale-up has yet to launch, without the lost ones.
func (r Record) PlannedAt() []fleet.Placement {
	var out []fleet.Placement
	if r.Action == nil {
		return out
	}
	for _, s := range r.Action.Slots {
		if s.State == SlotPlanned {
			out = append(out, s.Placement)
		}
	}
	return out
}

// Lost returns the slots of the open scale-up whose launch has failed permanently and for which
// nothing has been decided yet.
func (r Record) Lost() []Slot {
	var out []Slot
	if r.Action == nil {
		return out
	}
	for _, s := range r.Action.Slots {
		if s.Lost {
			out = append(out, s)
		}
	}
	return out
}

// PendingTermination returns the pending termination of an instance, nil if there is none.
func (r Record) PendingTermination(instance string) *PendingTermination {
	for i := range r.PendingTerminations {
		if c := &r.PendingTerminations[i]; instance != "" && c.InstanceID == instance {
			return c
		}
	}
	return nil
}

// Interruption returns the removal of an instance that the cloud reclaims, nil if there is none.
func (r Record) Interruption(instance string) *Removal { return removalOf(r.Interruptions, instance) }

// Repair returns the removal of an instance whose Node is unhealthy, nil if there is none.
func (r Record) Repair(instance string) *Removal { return removalOf(r.Repairs, instance) }

// Ending returns the removal of an instance that is shutting down, nil if there is none.
func (r Record) Ending(instance string) *Removal { return removalOf(r.Endings, instance) }

// Target returns the removal of an instance in the open scale-down, nil if there is none or it has ended.
func (r Record) Target(instance string) *Removal {
	if r.Action == nil {
		return nil
	}
	for i := range r.Action.Targets {
		if x := &r.Action.Targets[i]; x.InstanceID == instance && !x.Done() {
			return x
		}
	}
	return nil
}

func removalOf(list []Removal, instance string) *Removal {
	at := slices.IndexFunc(list, func(x Removal) bool { return x.InstanceID == instance })
	if at < 0 {
		return nil
	}
	return &list[at]
}

// Leaves reports whether an instance is being removed.
func (r Record) Leaves(instance string) bool {
	return instance != "" && (r.Interruption(instance) != nil || r.Repair(instance) != nil ||
		r.Target(instance) != nil || r.Ending(instance) != nil)
}

// Drained reports whether the node of an instance that is being removed is empty.
func (r Record) Drained(instance string) bool {
	x := cmp.Or(r.Interruption(instance), r.Repair(instance), r.Target(instance))
	return r.Ending(instance) != nil || x != nil && x.State == RemovalDrained
}

// Removals returns all removals.
func (r Record) Removals() []Removal {
	all := slices.Concat(r.Interruptions, r.Repairs, r.Endings)
	if r.Action != nil {
		all = append(all, r.Action.Targets...)
	}
	return all
}

// Instances returns the instances that the record contains. An instance may occur more than once.
func (r Record) Instances() []fleet.Instance {
	var out []fleet.Instance
	if a := r.Action; a != nil {
		for _, s := range a.Slots {
			if s.InstanceID != "" {
				out = append(out, a.Instance(s))
			}
		}
	}
	for _, i := range r.Removals() {
		out = append(out, fleet.Instance{ID: i.InstanceID, ProviderID: i.ProviderID, State: fleet.Running})
	}
	for _, c := range r.PendingTerminations {
		out = append(out, fleet.Instance{ID: c.InstanceID, State: fleet.Running, Launched: c.Since})
	}
	return out
}

// Instance returns the instance of a slot, as far as the action knows it.
func (a *Action) Instance(s Slot) fleet.Instance {
	return fleet.Instance{
		ID: s.InstanceID, ProviderID: s.ProviderID, Action: a.ID, Slot: s.Number, Token: s.Token,
		Placement: s.Placement, State: fleet.Pending, Launched: s.Requested,
	}
}

// DeletesPool reports whether the action removes the nodes of a pool that is being deleted.
func (a *Action) DeletesPool() bool { return a.Reason == PoolDeleted }

// Queued reports whether a target of the action waits for its turn. In a pool deletion it is
// already tainted then.
func (a *Action) Queued(r Removal) bool {
	return r.State == RemovalPlanned || a.DeletesPool() && r.State == RemovalTainted
}

// Planned returns the slots that a call with the token has yet to launch.
func (a *Action) Planned(token string) []*Slot {
	var out []*Slot
	for i := range a.Slots {
		if s := &a.Slots[i]; s.Token == token && s.State == SlotPlanned {
			out = append(out, s)
		}
	}
	return out
}

// HasLaunched reports whether the action has launched an instance at a placement.
func (a *Action) HasLaunched(p fleet.Placement) bool {
	return slices.ContainsFunc(a.Slots, func(s Slot) bool {
		return s.Placement == p && (s.State == SlotLaunched || s.State == SlotReady)
	})
}

// Done reports whether the removal has ended.
func (r Removal) Done() bool { return r.State == RemovalCompleted || r.State == RemovalFailed }

// Token returns the token of a call that launches a slot and others, in its attempt. It contains
// the number of instances, so the tags of an instance show how many others may have the same token.
func Token(action string, slot, attempt, instances int) string {
	out := fmt.Sprintf("%s-%d", action, slot)
	if attempt > 0 {
		out += fmt.Sprintf("-%d", attempt)
	}
	if instances > 1 {
		out += fmt.Sprintf("x%d", instances)
	}
	return out
}

// InstancesOf returns the number of instances of a token's call.
func InstancesOf(token string) int {
	_, after, several := strings.Cut(token, "x")
	if n, err := strconv.Atoi(after); several && err == nil {
		return n
	}
	return 1
}
