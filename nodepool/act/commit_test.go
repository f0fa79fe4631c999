package act

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

func TestCommit(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := fleet.Placement{Zone: "a", InstanceType: "t3.medium", Market: fleet.OnDemand}
	scaleUp := func(slots ...state.Slot) *state.Action {
		return &state.Action{ID: "up-1", Kind: state.ActionUp, Slots: slots}
	}
	for name, c := range map[string]struct {
		record   state.Record
		decision plan.Decision
		want     state.Record
		events   []journal.EventReason // none: the record has not changed
	}{
		"nothing is decided": {},
		"an interrupted target of a scale-down fails, and its interruption begins": {
			record: state.Record{Action: &state.Action{Kind: state.ActionDown, Targets: []state.Removal{
				{InstanceID: "i-1", State: state.RemovalDraining},
			}}},
			decision: plan.Decision{Interruptions: []plan.Interruption{{InstanceID: "i-1", Node: "one",
				Deadline: noon}}},
			want: state.Record{
				Action: &state.Action{Kind: state.ActionDown, Targets: []state.Removal{
					{InstanceID: "i-1", State: state.RemovalFailed, Since: noon,
						Error: "the cloud reclaims the instance"},
				}},
				Interruptions: []state.Removal{
					{InstanceID: "i-1", Node: "one", State: state.RemovalPlanned, Since: noon, Deadline: noon},
				},
			},
			events: []journal.EventReason{journal.EventInterrupted},
		},
		"an interruption takes over from a repair that has a replacement": {
			record: state.Record{Repairs: []state.Removal{{InstanceID: "i-1", State: state.RemovalDraining,
				ReplacementSettled: true}}},
			decision: plan.Decision{Interruptions: []plan.Interruption{{InstanceID: "i-1", Deadline: noon}}},
			want: state.Record{Repairs: []state.Removal{}, Interruptions: []state.Removal{
				{InstanceID: "i-1", State: state.RemovalPlanned, Since: noon, Deadline: noon, ReplacementSettled: true},
			}},
			events: []journal.EventReason{journal.EventInterrupted},
		},
		"a lost slot is planned again in its place": {
			record:   state.Record{Action: scaleUp(state.Slot{State: state.SlotFailed, Lost: true, Outdated: true})},
			decision: plan.Decision{Substitutes: []plan.Substitute{{Slot: 0, Placement: at}}},
			want: state.Record{Action: scaleUp(state.Slot{
				Placement: at, Token: "up-1-0-1", Attempt: 1, Outdated: true, State: state.SlotPlanned,
			})},
			events: []journal.EventReason{},
		},
		"a lost slot without a substitute stays failed": {
			record: state.Record{Action: scaleUp(state.Slot{State: state.SlotFailed, Lost: true})},
			want:   state.Record{Action: scaleUp(state.Slot{State: state.SlotFailed})},
			events: []journal.EventReason{},
		},
		"an instance that did not join is not kept any longer": {
			record: state.Record{PendingTerminations: []state.PendingTermination{
				{InstanceID: "i-1", Due: noon.Add(time.Hour)}, {InstanceID: "i-2", Due: noon.Add(-time.Hour)},
			}},
			decision: plan.Decision{GiveUp: []string{"i-1", "i-2", "i-unknown"}},
			want: state.Record{PendingTerminations: []state.PendingTermination{
				{InstanceID: "i-1", Due: noon}, {InstanceID: "i-2", Due: noon.Add(-time.Hour)},
			}},
			events: []journal.EventReason{journal.EventGivenUp},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := c.record.Clone(), c.decision
			d.At = noon
			events, changed := Commit(&r, d, noon)
			require.Equal(t, c.want, r)
			require.Equal(t, c.events != nil, changed)
			require.Len(t, events, len(c.events))
			for i, e := range events {
				require.Equal(t, c.events[i], e.Reason)
			}
		})
	}
}
