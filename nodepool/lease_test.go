package nodepool

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

func TestOneLeads(t *testing.T) {
	r := wanting(t, 1)
	other := r.process("other", r.clock.now)
	r.tick()
	for range 60 {
		r.clock.advance(2 * time.Second)
		r.tick()
		_, err := other.Tick(t.Context())
		require.NoError(t, err)
		require.False(t, r.last.Leading)
		require.NotEmpty(t, r.last.Decision.Reason, "it decides all the same")
	}
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, "run-1", r.record().Owner)
}

func TestTakeOver(t *testing.T) {
	r := wanting(t, 1)
	r.tick()
	other := r.process("other", r.clock.now)
	for waited := time.Duration(0); waited < journal.LeaseTerm; waited += 5 * time.Second {
		_, err := other.Tick(t.Context())
		require.NoError(t, err)
		require.Equal(t, "run-1", r.record().Owner, "after %s", waited)
		r.clock.advance(5 * time.Second)
	}
	_, err := other.Tick(t.Context())
	require.NoError(t, err)
	require.Equal(t, "other", r.record().Owner)
	require.Equal(t, 1, r.world.launches, "it goes on with the action that it found")

	version := r.record().Version
	r.tick()
	require.False(t, r.last.Leading)
	require.Equal(t, version, r.record().Version)
}

func TestRelease(t *testing.T) {
	r := wanting(t, 1)
	r.tick()
	require.NoError(t, r.pool.Release(t.Context()))
	require.Empty(t, r.record().Owner)
	r.restart()
	r.tick()
	require.Equal(t, "run-2", r.record().Owner, "at once")
	require.NotNil(t, r.record().Action, "with the open action")
	first := r.process("run-1", r.clock.now)
	require.NoError(t, first.Release(t.Context()))
	require.Equal(t, "run-2", r.record().Owner, "another's is left alone")
}

func TestLeaseLostDuringAnAction(t *testing.T) {
	r := wanting(t, 2*act.PerLaunch+20)
	r.world.offers = r.world.offers[:1]
	r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 200, 0
	r.world.lost = func(provider.Launch) error {
		if r.world.calls == 1 {
			r.clock.advance(journal.ActTerm) // the process was stopped for that long
		}
		return nil
	}
	r.tick()
	require.ErrorIs(t, r.health, journal.ErrLeaseLost)
	require.Equal(t, act.PerLaunch, r.world.launches, "nothing is launched after it")
	r.tick()
	r.until("all have joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 2*act.PerLaunch+20, r.world.launches)
}

func TestConflictEndsTheCycle(t *testing.T) {
	r := wanting(t, 1)
	r.tick()
	r.clock.advance(journal.RenewAfter)
	r.store.before = func(state.Record) error { return state.ErrConflict }
	r.world.joinDelay = 0
	r.tick()
	require.ErrorIs(t, r.health, state.ErrConflict)
	require.False(t, r.last.Leading)
	require.Equal(t, 1, r.count(journal.EventLaunched))
	require.Zero(t, r.count(journal.EventJoined), "what is not written has not happened")
}

func TestClocksThatAreAnHourOff(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := wanting(t, 2)
			r.world.joinDelay = 3 * time.Minute
			r.tick()
			other := r.process("other", func() time.Time { return r.clock.now().Add(off) })
			took := time.Duration(0)
			for ; r.record().Owner == "run-1"; took += 2 * time.Second {
				_, err := other.Tick(t.Context())
				require.NoError(t, err)
				r.clock.advance(2 * time.Second)
			}
			require.Equal(t, journal.LeaseTerm, took-2*time.Second, "whatever the clock says")
			for range 10 * 60 {
				_, err := other.Tick(t.Context())
				require.NoError(t, err)
				r.clock.advance(2 * time.Second)
			}
			require.Empty(t, r.world.violations)
			require.Nil(t, r.record().Action)
			require.GreaterOrEqual(t, r.running(), 2)
			require.Equal(t, plan.Hold, r.last.Decision.Step)
		})
	}
}

func TestJournalDownForTenMinutes(t *testing.T) {
	r := wanting(t, 2)
	r.tick()
	r.store.loadErr = errors.New("down")
	r.pass(10 * time.Minute)
	require.Error(t, r.health)
	last := r.last
	require.Equal(t, NotDecided, last.Decision.Reason)
	require.Equal(t, plan.Hold, last.Decision.Step)
	require.Equal(t, last.At, r.signals.seen.Now, "signals are observed all the same")
	r.store.loadErr = nil
	r.until("the scale-up ends", time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 2, r.world.launches)
	require.NoError(t, r.health)
}

func TestCloudDownForTenMinutes(t *testing.T) {
	r := wanting(t, 2)
	r.world.add(2)
	r.tick()
	r.world.listErr = errors.New("down")
	r.world.nodes["node-i-old0"].ready = false
	r.pass(10 * time.Minute)
	require.Zero(t, r.world.launches)
	require.Equal(t, plan.WorkersUnknown, r.last.Decision.Reason)
	r.world.listErr = nil
	r.tick()
	require.Zero(t, r.world.launches)
	require.Equal(t, 2, r.last.Decision.Workers)
}

func TestLostAnswersOfTheJournal(t *testing.T) {
	r := wanting(t, 2)
	saves := 0
	r.store.after = func(state.Record) error {
		if saves++; saves%2 == 0 {
			return errLost
		}
		return nil
	}
	r.until("it ends all the same", 10*time.Minute, func() bool { return r.record().LastUp != time.Time{} })
	require.Equal(t, 2, r.world.launches)
	require.Equal(t, 2, r.running())
}

func TestDryRun(t *testing.T) {
	r := wanting(t, 2)
	r.spec.DryRun = true
	r.pass(time.Minute)
	require.Zero(t, r.world.launches)
	last := r.last
	require.True(t, last.Leading, "so that one process reports")
	require.Equal(t, plan.ScaleUp, last.Decision.Step)
	r.spec.DryRun = false
	r.tick()
	require.Equal(t, 2, r.world.launches)

	r.spec.DryRun = true
	r.pass(5 * time.Minute)
	require.NotNil(t, r.record().Action, "an open action waits")
	r.spec.DryRun = false
	r.tick()
	require.Nil(t, r.record().Action)
}

// staleCloud returns a list that another process makes stale before it is used.
type staleCloud struct {
	*fakeWorld
	meanwhile func()
}

func (c *staleCloud) List(ctx context.Context) ([]fleet.Instance, error) {
	out, err := c.fakeWorld.List(ctx)
	if do := c.meanwhile; do != nil {
		c.meanwhile = nil
		do()
	}
	return out, err
}

// A process that takes the lease has a message about an instance that the process before it has
// drained and terminated. It launches no second replacement, whether its own list is older than
// that or lacks the instance.
func TestTakeOverWithAMessageThatIsDone(t *testing.T) {
	for name, early := range map[string]bool{"the list is older": true, "the list lacks the instance": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(3)
			r.spec.Plan.Min = 3
			other := r.process("other", r.clock.now)
			cloud := &staleCloud{fakeWorld: r.world}
			other.options.Provider = cloud
			other.connectPhases()
			r.tick()
			_, err := other.Tick(t.Context())
			require.NoError(t, err)
			m := r.take("i-old1")
			other.Notify(m)
			drained := func() {
				r.until("it has gone", time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
				require.NoError(t, r.pool.Release(t.Context()))
			}
			if early {
				cloud.meanwhile = drained
			} else {
				drained()
			}
			_, err = other.Tick(t.Context())
			require.NoError(t, err)
			require.Equal(t, "other", r.record().Owner)
			for range 120 {
				r.clock.advance(2 * time.Second)
				_, err := other.Tick(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, 1, r.world.launches)
			require.Empty(t, r.record().Interruptions)
			require.Equal(t, 3, r.running())
		})
	}
}

// twoProcesses runs two processes of a pool, of which the first leads. It returns a function that
// kills the first, which then writes nothing any more, and one that ends it.
func twoProcesses(t *testing.T, prepare func(r *rig), do func(r *rig, kill, end func())) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.clock.real = true
		prepare(r)
		k := &killer{at: -1}
		r.mortal(k)
		other := r.process("other", r.clock.now)
		ctx, cancel := context.WithCancel(t.Context())
		first, endFirst := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { _ = r.pool.Run(first) })
		time.Sleep(time.Second)
		running.Go(func() { _ = other.Run(ctx) })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, "run-1", r.record().Owner)
		do(r, func() {
			k.mu.Lock()
			k.dead = true
			k.mu.Unlock()
			endFirst()
		}, endFirst)
		cancel()
		running.Wait()
		require.Empty(t, r.world.violations)
	})
}

// handOver returns the time until the second process leads.
func (r *rig) handOver() time.Duration {
	began := time.Now()
	for r.record().Owner != "other" && time.Since(began) < time.Minute {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// A leader keeps its lease with cycles of any interval. A killed one is replaced within a quarter of a minute,
// and one that ends normally at once.
func TestHandOver(t *testing.T) {
	for _, interval := range []time.Duration{15 * time.Second, 2 * time.Minute} {
		prepare := func(r *rig) { r.spec.Plan.Min, r.spec.Interval = 1, interval }
		t.Run("a leader dies "+interval.String(), func(t *testing.T) {
			twoProcesses(t, prepare, func(r *rig, kill, _ func()) {
				kill()
				took := r.handOver()
				require.Greater(t, took, journal.LeaseTerm-journal.RenewAfter)
				require.LessOrEqual(t, took, journal.LeaseTerm+2*journal.WatchEvery)
			})
		})
		t.Run("a leader ends "+interval.String(), func(t *testing.T) {
			twoProcesses(t, prepare, func(r *rig, _, end func()) {
				end()
				require.LessOrEqual(t, r.handOver(), journal.WatchEvery+minPause)
			})
		})
	}
}

// A cycle that takes longer than the lease does not lose it, because it is renewed meanwhile.
func TestLeaseOutlastsALongCycle(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.change(func(o *Options) { o.Observer = slowObserver{r.world, 3 * journal.LeaseTerm} })
	}, func(r *rig) {
		r.setSpec(func(s *config.Spec) { s.Plan.Min = 2 })
		r.sleepFor(5 * time.Minute)
		require.NoError(t, r.health)
		require.Equal(t, 2, r.world.launches)
		require.Equal(t, 1, r.count(journal.EventLeading))
	})
}

// slowObserver observes slowly.
type slowObserver struct {
	*fakeWorld
	takes time.Duration
}

func (o slowObserver) Observe(ctx context.Context) (*cluster.Cluster, error) {
	time.Sleep(o.takes)
	return o.fakeWorld.Observe(ctx)
}
