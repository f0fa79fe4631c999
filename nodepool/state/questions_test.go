package state_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"
)

func TestQuestionsAboutSlots(t *testing.T) {
	at := fleet.Placement{Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot}
	lost := state.Slot{Number: 2, Placement: at, State: state.SlotFailed, Lost: true}
	r := state.Record{Action: &state.Action{ID: "up-1", Kind: state.ActionUp, Slots: []state.Slot{
		{Placement: at, State: state.SlotPlanned}, {Number: 1, Placement: at, State: state.SlotReady}, lost,
		{Number: 3, State: state.SlotFailed},
	}}}
	assert.Equal(t, state.ActionUp, r.ActionKind())
	assert.Equal(t, "up-1", r.ActionID())
	assert.Equal(t, []fleet.Placement{at}, r.PlannedAt())
	assert.Equal(t, []state.Slot{lost}, r.Lost())

	none := state.Record{}
	assert.Empty(t, none.ActionKind())
	assert.Empty(t, none.ActionID())
	assert.Empty(t, none.PlannedAt())
	assert.Empty(t, none.Lost())
}

func TestDrained(t *testing.T) {
	drained := func(id string) []state.Removal {
		return []state.Removal{{InstanceID: id, State: state.RemovalDrained},
			{InstanceID: id + "-not", State: state.RemovalDraining}}
	}
	r := state.Record{
		Action: &state.Action{Kind: state.ActionDown,
			Targets: append(drained("target"), state.Removal{InstanceID: "over", State: state.RemovalFailed})},
		Interruptions: drained("taken"), Repairs: drained("sick"),
		Endings: []state.Removal{{InstanceID: "ending", State: state.RemovalTerminated}},
	}
	for id, want := range map[string]bool{
		"target": true, "taken": true, "sick": true, "ending": true,
		"target-not": false, "taken-not": false, "sick-not": false, "over": false, "unknown": false,
	} {
		assert.Equal(t, want, r.Drained(id), id)
	}
}
