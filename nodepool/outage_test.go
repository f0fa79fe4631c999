package nodepool

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// outage is how long a dependency of the pool is unavailable in these tests.
const outage = 10 * time.Minute

var errDown = errors.New("connection refused")

// while changes the cloud and the cluster between two cycles.
func (r *rig) while(change func()) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	change()
}

// breakJournal makes the store fail; with nil it works again.
func (r *rig) breakJournal(err error) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.loadErr = err
}

// set sets the signals from the next cycle on.
func (s *fakeSignals) set(signals ...plan.Signal) { s.signals = signals }

// draining drains the oldest of three workers, which has a pod that a budget keeps.
func draining(r *rig) *fakePod {
	r.world.add(3)
	r.oneZone()
	r.spec.Plan.Max = 2
	r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest}
	pod := &fakePod{name: "shop/cart", refused: "the budget allows none"}
	r.load("node-i-old0", pod)
	return pod
}

func TestTenMinutesWithoutJournalInAScaleUp(t *testing.T) {
	inBubble(t, func(r *rig) { r.spec.Plan.Min = 2 }, func(r *rig) {
		r.sleepFor(5 * time.Second)
		require.Equal(r, 2, r.world.launches)
		r.breakJournal(errDown)
		r.sleepFor(outage)
		require.Equal(r, NotDecided, r.last.Decision.Reason)
		require.ErrorIs(r, r.last.Health, errDown)
		require.Equal(r, 2, r.world.launches)
		require.Empty(r, r.world.terminated)
		r.breakJournal(nil)
		r.sleepFor(time.Minute)
		require.NoError(r, r.last.Health)
		require.Equal(r, 1, r.count(journal.EventScaledUp))
		require.Equal(r, 2, r.world.launches)
		require.Equal(r, 2, r.running())
	})
}

func TestTenMinutesWithoutJournalInADrain(t *testing.T) {
	var pod *fakePod
	inBubble(t, func(r *rig) { pod = draining(r) }, func(r *rig) {
		r.sleepFor(20 * time.Second)
		require.Equal(r, state.RemovalDraining, r.record().Action.Targets[0].State)
		r.breakJournal(errDown)
		r.while(func() { pod.refused = "" })
		r.sleepFor(outage)
		require.Equal(r, NotDecided, r.last.Decision.Reason)
		r.while(func() { require.Zero(r, pod.leaves, "no process evicts whose lease may be another's") })
		require.Empty(r, r.world.terminated)
		r.breakJournal(nil)
		r.sleepFor(time.Minute)
		require.Zero(r, r.count(journal.EventDrainFailed), "its time was over, and nothing holds its pod any more")
		r.sleepFor(time.Minute)
		require.Equal(r, []string{"i-old0"}, r.world.terminated)
		r.clean()
	})
}

func TestTenMinutesWithoutTheCloud(t *testing.T) {
	var pod *fakePod
	down := func(r *rig, err error) {
		r.while(func() {
			r.world.listErr, r.world.termErr = err, err
			r.world.capacity = nil
			if err != nil {
				r.world.capacity = func(provider.Launch) error {
					return &provider.Error{Class: provider.Unknown, Op: "Launch", Err: err}
				}
			}
		})
	}
	t.Run("when nothing is open", func(t *testing.T) {
		inBubble(t, func(r *rig) { r.world.add(2); r.spec.Plan.Min = 2 }, func(r *rig) {
			r.sleepFor(20 * time.Second)
			down(r, errDown)
			r.while(func() { r.world.instances["i-old0"].endedAt = r.clock.now() })
			r.sleepFor(outage)
			require.Zero(r, r.world.launches, "the minimum is kept on trusted counts alone")
			require.Equal(r, plan.WorkersUnknown, r.last.Decision.Reason)
			require.ErrorIs(r, r.last.Health, errDown)
			require.True(r, r.last.Leading, "the lease is not lost")
			down(r, nil)
			r.sleepFor(4 * time.Minute)
			require.Equal(r, 1, r.world.launches)
			require.Equal(r, 2, r.running())
			require.NoError(r, r.last.Health)
		})
	})
	t.Run("in a scale-up", func(t *testing.T) {
		inBubble(t, func(r *rig) { down(r, errDown); r.while(func() { r.world.listErr = nil }); r.spec.Plan.Min = 2 },
			func(r *rig) {
				r.sleepFor(5 * time.Second)
				tokens := []string{r.record().Action.Slots[0].Token, r.record().Action.Slots[1].Token}
				down(r, errDown)
				r.sleepFor(outage - 2*time.Minute) // the next try is within the time limit of launches
				slots := r.record().Action.Slots
				require.Len(r, slots, 2)
				for i, s := range slots {
					require.Equal(r, tokens[i], s.Token, "the same launch is repeated")
					require.Greater(r, s.Tries, 5)
					require.Less(r, s.Tries, 30)
				}
				down(r, nil)
				r.sleepFor(3 * time.Minute)
				require.Equal(r, 2, r.world.launches)
				require.Equal(r, 1, r.count(journal.EventScaledUp))
			})
	})
	t.Run("in a drain", func(t *testing.T) {
		inBubble(t, func(r *rig) { pod = draining(r) }, func(r *rig) {
			r.sleepFor(20 * time.Second)
			down(r, errDown)
			r.while(func() { pod.refused = "" })
			r.sleepFor(outage)
			r.while(func() {
				require.Zero(r, pod.leaves, "nothing is evicted for an instance that is not known to be there")
			})
			down(r, nil)
			r.sleepFor(2 * time.Minute)
			require.Equal(r, 2, r.running())
			r.clean()
		})
	})
}

func TestTenMinutesWithoutTheCluster(t *testing.T) {
	inBubble(t, func(r *rig) { r.world.add(2); r.spec.Plan.Min = 2 }, func(r *rig) {
		r.sleepFor(20 * time.Second)
		r.while(func() {
			r.world.observeErr, r.world.drainErr = errDown, errDown
			r.pend(2)
		})
		r.breakJournal(errDown) // it is in the same API server
		r.sleepFor(outage)
		require.Zero(r, r.world.launches)
		require.Empty(r, r.world.terminated)
		require.ErrorIs(r, r.last.Health, errDown)
		r.while(func() { r.world.observeErr, r.world.drainErr = nil, nil })
		r.breakJournal(nil)
		r.sleepFor(2 * time.Minute)
		require.Equal(r, 1, r.world.launches, "for the pods")
		require.Equal(r, 1, r.count(journal.EventScaledUp))
		require.Empty(r, r.world.terminated)
	})
}

func TestTenMinutesWithoutMetrics(t *testing.T) {
	known := plan.Signal{Name: "cpu", Known: true, Now: 0.1, Predicted: 0.1, Threshold: 0.7,
		Desired: 1, Fits: 1, CPU: true}
	inBubble(t, func(r *rig) {
		r.world.add(3)
		r.oneZone()
		r.spec.Plan.Min = 1
		r.spec.Plan.Idle.For = 5 * time.Minute
		r.signals.set(known)
	}, func(r *rig) {
		r.sleepFor(4 * time.Minute)
		r.signals.set(plan.Signal{Name: "cpu", Threshold: 0.7, CPU: true, Err: "connection refused"})
		r.sleepFor(outage)
		require.Empty(r, r.world.terminated, "what is not known is not idle")
		require.Equal(r, plan.MetricsUnknown, r.last.Decision.Reason)
		require.Contains(r, r.last.Decision.Message, "connection refused")
		require.NoError(r, r.last.Health, "the pool can do what it decides")
		r.while(func() { r.pend(1) })
		r.sleepFor(time.Minute)
		require.Equal(r, 1, r.world.launches, "pods that wait are seen without metrics")
		r.while(func() { r.world.pending = nil })

		r.signals.set(known)
		r.sleepFor(4 * time.Minute)
		require.Empty(r, r.world.terminated, "it has to be idle again")
		r.sleepFor(20 * time.Minute)
		require.NotEmpty(r, r.world.terminated)
	})
}

// brokenNotices is a queue that can be down.
type brokenNotices struct {
	*fakeNotices
	down atomic.Bool
}

func (q *brokenNotices) Receive(ctx context.Context) ([]provider.Message, error) {
	if q.down.Load() {
		return nil, errDown
	}
	return q.fakeNotices.Receive(ctx)
}

func TestTenMinutesWithoutTheQueue(t *testing.T) {
	q := &brokenNotices{}
	inBubble(t, func(r *rig) {
		r.world.add(2)
		r.world.leaving = 30 * time.Second // as EC2 lists instances that shut down
		r.spec.Plan.Min, r.spec.Plan.CooldownUp = 2, time.Minute
		q.fakeNotices = r.notices
		r.change(func(o *Options) { o.Notices = q })
	}, func(r *rig) {
		q.down.Store(true)
		r.sleepFor(time.Minute)
		require.ErrorIs(r, r.last.Health, errDown)
		sent := time.Now()
		r.while(func() { r.pend(2) })
		r.sleepFor(2 * time.Minute)
		require.Equal(r, 1, r.world.launches, "everything else goes on")
		require.Equal(r, 3, r.running())
		r.while(func() {
			r.world.pending = nil
			r.world.instances["i-old0"].endedAt = r.clock.now()
			r.world.instances["i-old1"].endedAt = r.clock.now()
		})
		r.sleepFor(outage - 3*time.Minute)
		require.Equal(r, 2, r.world.launches)
		require.Equal(r, 2, r.running(), "what went without a notice is replaced once it is seen to go, up to the minimum")
		require.Equal(r, 2, r.count(journal.EventNodeDeleted))

		r.notices.mu.Lock()
		r.notices.messages = []provider.Message{{InstanceID: "i-old0", Kind: provider.MessageInterruption,
			Deadline: sent.Add(2 * time.Minute)}}
		r.notices.mu.Unlock()
		q.down.Store(false)
		r.sleepFor(time.Minute)
		require.NoError(r, r.last.Health)
		require.Len(r, r.notices.done, 1, "the late message is handled")
		r.sleepFor(5 * time.Minute)
		require.Equal(r, 2, r.running(), "and nothing more comes of it")
		require.Empty(r, r.record().Interruptions)
	})
}

// slowCloud lists instances slowly.
type slowCloud struct {
	*fakeWorld
	takes time.Duration
}

func (w slowCloud) List(ctx context.Context) ([]fleet.Instance, error) {
	w.clock.advance(w.takes)
	return w.fakeWorld.List(ctx)
}

// In a large account the lists alone take longer than a cycle may launch or drain.
func TestSlowListsHoldNothingBack(t *testing.T) {
	for _, takes := range []time.Duration{0, 2 * act.ActFor} {
		t.Run(takes.String(), func(t *testing.T) {
			r := wanting(t, 2)
			r.change(func(o *Options) { o.Provider = slowCloud{r.world, takes} })
			r.tick()
			require.Equal(t, 2, r.world.launches)

			r = idle(t, 2)
			r.change(func(o *Options) { o.Provider = slowCloud{r.world, takes} })
			r.until("a node is removed", time.Hour, func() bool { return len(r.world.terminated) == 1 })
		})
	}
}
