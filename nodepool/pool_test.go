package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

func TestPendingPodsGetNodes(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.Plan.Min = 2
	r.tick()
	r.pend(4)
	r.until("the nodes have joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Len(t, r.world.nodes, 4)
	require.Equal(t, []journal.EventReason{journal.EventLeading, journal.EventScaleUpStarted, journal.EventLaunched,
		journal.EventLaunched, journal.EventJoined, journal.EventJoined, journal.EventScaledUp}, r.events)

	record := r.record()
	require.Nil(t, record.Action)
	require.Equal(t, r.clock.now(), record.LastUp)
	require.Len(t, record.Joins, 2)
	require.Equal(t, 30*time.Second, record.Joins[0].Ready.Sub(record.Joins[0].Requested))
	require.NoError(t, r.health)
}

func TestIdlePoolShrinks(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.spec.Plan.Min, r.spec.Plan.Idle.For = 2, time.Minute
	r.load("node-i-old0", &fakePod{name: "a"}, &fakePod{name: "b"})
	r.load("node-i-old1", &fakePod{name: "c"})
	r.until("two nodes are removed", 30*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 2 })
	r.ends()
	require.Len(t, r.world.nodes, 2)
	require.Equal(t, 2, r.running())
	require.Equal(t, []journal.EventReason{
		journal.EventLeading,
		journal.EventScaleDownStarted, journal.EventDrained, journal.EventTerminated, journal.EventScaledDown,
		journal.EventScaleDownStarted, journal.EventDrained, journal.EventTerminated, journal.EventScaledDown,
	}, r.events)
	r.pass(5 * time.Minute)
	require.Equal(t, plan.AtMinimum, r.last.Decision.Reason)
	r.clean()
}
