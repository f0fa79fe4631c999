package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/provider"
)

// launchedBy has an action have launched all instances.
func (r *rig) launchedBy(action string) {
	for _, i := range r.world.instances {
		i.Action = action
	}
}

// Nodes of instances that run can vanish: the cluster is restored from a backup, or somebody deletes them all.
func TestInstancesOutliveTheirNodes(t *testing.T) {
	lose := func(t *testing.T) *rig {
		r := newRig(t)
		r.world.add(8)
		r.launchedBy("up-long-ago")
		r.spec.Plan.Min = 8
		r.tick()
		r.world.joins = func(provider.Launch) bool { return false }
		clear(r.world.nodes)
		return r
	}
	t.Run("while a process looks", func(t *testing.T) {
		r := lose(t)
		r.spec.Plan.Max = 20
		r.spec.Join.KeepFailed = true
		r.pass(time.Hour)
		require.Empty(t, r.world.terminated)
		require.ErrorContains(t, r.health, "what is seen is not to be trusted")
	})
	t.Run("before it begins", func(t *testing.T) {
		r := lose(t)
		require.NoError(t, r.pool.Release(t.Context()))
		r.restart()
		r.tick()
		require.Equal(t, 8, r.told[len(r.told)-1].Decision.Workers, "it has not seen them without nodes for long")
		r.pass(time.Hour)
		for id := range r.world.instances {
			if r.world.instances[id].Action == "up-long-ago" {
				require.NotContains(t, r.world.terminated, id)
			}
		}
	})
	t.Run("a few", func(t *testing.T) {
		r := newRig(t)
		r.world.add(10)
		r.launchedBy("up-long-ago")
		r.tick()
		for _, name := range []string{"node-i-old0", "node-i-old1", "node-i-old2"} {
			delete(r.world.nodes, name)
		}
		require.NoError(t, r.pool.Release(t.Context()))
		r.restart()
		r.pass(r.spec.Join.Timeout + orphanMargin)
		require.Empty(t, r.world.terminated, "how long they have been without nodes is not known")
		r.until("some are condemned", time.Minute, func() bool { return len(r.record().Condemned) > 0 })
		require.Len(t, r.record().Condemned, atOnce)
		r.until("all have gone", time.Minute, func() bool { return len(r.world.terminated) == 3 })
	})
}

// Condemned instances wait until the world can be trusted again.
func TestNothingIsTerminatedInDoubt(t *testing.T) {
	r := newRig(t)
	r.world.joins = func(provider.Launch) bool { return false }
	r.world.add(5)
	r.spec.Plan.Min = 6
	r.until("it is condemned", 12*time.Minute, func() bool { return len(r.record().Condemned) == 1 })
	r.spec.Plan.Min = 5
	for _, n := range r.world.nodes {
		n.ready = false
	}
	r.pass(time.Hour)
	require.Empty(t, r.world.terminated)
	require.ErrorContains(t, r.health, "what is seen is not to be trusted")
	for _, n := range r.world.nodes {
		n.ready = true
	}
	r.until("it is terminated", time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-1"}, r.world.terminated)
}

// Launches that never join are no sign that the rest of the world is not as it looks.
func TestAllThatNeverJoinedGo(t *testing.T) {
	r := wanting(t, 5)
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("none has joined", 12*time.Minute, func() bool { return len(r.record().Condemned) == 5 })
	r.world.pending = nil
	r.until("they are terminated", 20*time.Minute, func() bool { return len(r.world.terminated) == 5 })
}
