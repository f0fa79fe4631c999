package nodepool

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

func refused(class provider.Class) error {
	return &provider.Error{Class: class, Op: "Launch", Code: "Refused", Err: errors.New("refused")}
}

// wanting sets the minimum of the pool to n workers.
func wanting(t *testing.T, n int) *rig {
	r := newRig(t)
	r.spec.Plan.Min = n
	return r
}

func TestCapacityMovesOn(t *testing.T) {
	r := wanting(t, 2)
	r.world.capacity = func(l provider.Launch) error {
		if l.Zone == "a" {
			return refused(provider.Capacity)
		}
		return nil
	}
	r.until("both have joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	for _, i := range r.world.instances {
		require.Equal(t, "b", i.Zone)
	}
	require.Equal(t, 2, r.running())
	require.NotEmpty(t, r.record().Cooling)
	for _, c := range r.record().Cooling {
		require.Equal(t, "a", c.Zone)
		require.Equal(t, "t3.medium", c.InstanceType)
	}
}

func TestNoCapacityAnywhere(t *testing.T) {
	r := wanting(t, 1)
	tokens := map[string]provider.Launch{}
	r.world.capacity = func(l provider.Launch) error {
		require.NotContains(t, tokens, l.Token, "a definitive error has its token used again")
		tokens[l.Token] = l
		return refused(provider.Capacity)
	}
	r.until("it has failed", 3*time.Minute, func() bool { return r.count(journal.EventScaleUpFailed) == 1 })
	require.Len(t, tokens, 2, "On-Demand in both zones: the ratio of the pool asks for no Spot")
	record := r.record()
	require.Zero(t, record.Failures, "no launch was futile")
	require.Equal(t, plan.InsufficientCapacity, r.lastReason(30*time.Second))

	r.world.capacity = nil
	r.until("it is tried again when the placements have cooled", 10*time.Minute,
		func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Zero(t, r.record().Failures)
}

// lastReason returns the reason of the decision after some time.
func (r *rig) lastReason(after time.Duration) plan.Reason {
	r.pass(after)
	return r.last.Decision.Reason
}

func TestErrorsCoolWhatTheyConcern(t *testing.T) {
	for class, want := range map[provider.Class]fleet.Cooling{
		provider.Capacity: {Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot},
		provider.Quota:    {Market: fleet.Spot},
		provider.Address:  {Zone: "a", Subnet: "subnet-a"},
	} {
		t.Run(string(class), func(t *testing.T) {
			r := wanting(t, 1)
			r.spec.Plan.SpotRatio = 1
			failed := false
			r.world.capacity = func(provider.Launch) error {
				if failed {
					return nil
				}
				failed = true
				return refused(class)
			}
			r.tick()
			record := r.record()
			require.Len(t, record.Cooling, 1)
			got := record.Cooling[0]
			require.Equal(t, r.clock.now().Add(state.CoolFor), got.Until)
			got.Until, got.Reason = time.Time{}, ""
			require.Equal(t, want, got)

			require.True(t, record.Action.Slots[0].Lost)
			token := record.Action.Slots[0].Token
			require.Equal(t, minPause, r.pool.pause(nil), "the next cycle comes soon")
			r.clock.advance(minPause)
			r.tick()
			record = r.record()
			require.Len(t, record.Action.Slots, 1, "the slot itself is launched as something else")
			second := record.Action.Slots[0]
			require.Equal(t, state.SlotLaunched, second.State)
			require.NotEqual(t, token, second.Token)
			if class == provider.Quota {
				require.Equal(t, fleet.OnDemand, second.Market)
			} else {
				require.Equal(t, "b", second.Zone)
			}
		})
	}
}

func TestTokenMismatchTakesANewToken(t *testing.T) {
	r := wanting(t, 1)
	r.spec.Join.Timeout = time.Hour
	tokens := map[string]bool{}
	r.world.capacity = func(l provider.Launch) error { tokens[l.Token] = true; return refused(provider.TokenMismatch) }
	r.until("it has failed", 20*time.Minute, func() bool { return r.count(journal.EventScaleUpFailed) == 1 })
	require.Len(t, tokens, 1+plan.MaxSubstitutes)
	require.Empty(t, r.record().Cooling)
}

// The answer to a launch is lost, and then the template changes before the instance is listed.
func TestTokenMismatchOfAnInstanceThatIsNotListedYet(t *testing.T) {
	r := wanting(t, 1)
	r.world.visibility = 10 * time.Second
	lost := false
	r.world.lost = func(provider.Launch) error {
		if lost {
			return nil
		}
		lost = true
		return errLost
	}
	r.tick()
	for _, list := range r.world.tokens {
		list[0].launch.Subnet = "another, to the cloud"
	}
	r.clock.advance(4 * time.Second)
	r.until("it has joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
}

// A zone in which launches fail comes after the others, and is tried if there is no other.
func TestBadZonesComeLast(t *testing.T) {
	for name, class := range map[string]provider.Class{"nodes do not join": "", "invalid": provider.Invalid} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(3)
			r.oneZone()
			tries := map[string]int{}
			r.world.joins = func(l provider.Launch) bool { return l.Zone == "a" }
			r.world.capacity = func(l provider.Launch) error {
				if tries[l.Zone]++; l.Zone == "b" && class != "" {
					return refused(class)
				}
				return nil
			}
			r.pend(4)
			r.until("nodes have joined elsewhere", 15*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
			require.True(t, r.record().Cooling[0].Suspected)
			require.Equal(t, "b", r.record().Cooling[0].Zone)
			before := maps.Clone(tries)
			r.pass(30 * time.Minute)
			require.Equal(t, before["b"], tries["b"])
			require.Greater(t, tries["a"], before["a"])
		})
	}
	t.Run("there is no other", func(t *testing.T) {
		r := wanting(t, 1)
		r.world.offers = r.world.offers[:1]
		r.world.joins = func(provider.Launch) bool { return false }
		r.until("it is tried again", 15*time.Minute, func() bool { return r.world.launches == 2 })
		r.world.joins = nil
		r.until("it joins", 15*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
		require.Empty(t, r.record().Cooling)
	})
}

// A notice does not wait until hundreds of nodes have been launched.
func TestLaunchesAreInterruptedByNotices(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.tick()
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 500, 600, 0
	r.world.lost = func(provider.Launch) error { r.clock.advance(3 * time.Second); return nil }
	r.tick()
	require.Len(t, r.record().Action.Slots, 498)
	require.Equal(t, 2, r.world.calls, "no further call after %s", act.ActFor)
	r.world.lost = func(provider.Launch) error { r.take("i-old1"); return nil }
	r.tick()
	require.Equal(t, 2+act.LaunchesAtOnce, r.world.calls)
	r.world.lost = nil
	r.tick()
	require.Equal(t, 1, r.count(journal.EventInterrupted))
	r.until("all have joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
}

func TestUnknownLaunchIsRetriedWithItsToken(t *testing.T) {
	for name, err := range map[string]error{
		"lost": errLost, "unknown": refused(provider.Unknown), "throttled": refused(provider.Throttled),
	} {
		t.Run(name, func(t *testing.T) {
			r := wanting(t, 1)
			r.world.visibility = time.Hour // so that it is not adopted by its tags
			tries := 0
			r.world.lost = func(provider.Launch) error { tries++; return err }
			r.tick()
			slot := r.record().Action.Slots[0]
			require.Equal(t, state.SlotPlanned, slot.State)
			require.True(t, slot.NotBefore.After(r.clock.now()), "%s", slot.NotBefore)
			require.LessOrEqual(t, slot.NotBefore.Sub(r.clock.now()), act.RetryMin)
			r.world.visibility = time.Minute
			r.until("it has joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
			require.Equal(t, 1, r.world.launches)
			require.Equal(t, 1, tries)
		})
	}
}

func TestLaunchIsAdoptedByItsTags(t *testing.T) {
	r := wanting(t, 1)
	r.world.lost = func(provider.Launch) error { return errLost }
	r.tick()
	r.restart()
	r.tick()
	slot := r.record().Action.Slots[0]
	require.Equal(t, state.SlotPlanned, slot.State, "the first process holds the lease")
	r.clock.advance(journal.LeaseTerm + r.world.joinDelay)
	r.tick()
	require.Equal(t, state.SlotReady, r.slotAfter(0, "i-1"))
}

// slotAfter returns the state of a slot as the last cycle wrote it, even if its action is over.
func (r *rig) slotAfter(_ int, instance string) state.SlotState {
	switch {
	case r.count(journal.EventJoined) > 0:
		return state.SlotReady
	case r.record().Action != nil && r.record().Action.Slots[0].InstanceID == instance:
		return r.record().Action.Slots[0].State
	}
	return ""
}

func TestRetriesEnd(t *testing.T) {
	r := wanting(t, 1)
	r.world.capacity = func(provider.Launch) error { return refused(provider.Unknown) }
	r.until("it is given up", 15*time.Minute, func() bool { return r.count(journal.EventScaleUpFailed) == 1 })
	require.Greater(t, r.clock.now().Sub(r.cycles[0]), r.spec.Join.Timeout)
	require.Equal(t, 1, r.record().Failures)
}

func TestInvalidFailsAtOnce(t *testing.T) {
	r := wanting(t, 3)
	launches := 0
	r.world.capacity = func(provider.Launch) error { launches++; return refused(provider.Invalid) }
	r.tick()
	require.Equal(t, 2, launches, "what can never succeed is tried once in each zone")
	require.Equal(t, 1, r.count(journal.EventScaleUpFailed))
	require.Error(t, r.health)
	require.Equal(t, plan.BackingOff, r.lastReason(10*time.Second))
	r.pass(30 * time.Minute)
	require.Less(t, launches, 10, "each failure doubles the wait, up to five minutes")
}

func TestNotListedYetIsNotGone(t *testing.T) {
	r := wanting(t, 2)
	r.world.visibility, r.world.joinDelay = 90*time.Second, 3*time.Minute
	r.until("both have joined", 6*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 2, r.world.launches)
	require.Zero(t, r.count(journal.EventVanished))
}

func TestLaunchesThatNeverJoin(t *testing.T) {
	r := wanting(t, 1)
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("its time is over", 11*time.Minute, func() bool { return r.count(journal.EventJoinFailed) == 1 })
	record := r.record()
	require.Nil(t, record.Action)
	require.Equal(t, 1, record.Failures)
	require.Len(t, record.PendingTerminations, 1)
	require.True(t, r.world.instances["i-1"].JoinFailed, "it is tagged")
	require.Zero(t, len(r.world.terminated), "it is kept to be looked at")
	r.tick()
	require.Zero(t, r.last.Decision.Workers, "it does not count")

	r.until("it is terminated", 16*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-1"}, r.world.terminated)
	r.pass(2 * time.Hour)
	require.Less(t, r.world.launches, 12, "launches back off, each for as long as a join may take and up to five minutes")
}

// A pool keeps instances that did not join as long as their places are not needed.
func TestFailedInstancesAreKept(t *testing.T) {
	r := wanting(t, 1)
	r.spec.Join.KeepFailedFor = 1000 * time.Hour
	r.firstNeverJoins()
	r.pass(2 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.Len(t, r.record().PendingTerminations, 1)
}

func TestLateJoinIsKept(t *testing.T) {
	r := wanting(t, 1)
	r.world.joinDelay = 12 * time.Minute
	r.pass(12 * time.Minute)
	require.Len(t, r.record().PendingTerminations, 1)
	r.pass(30 * time.Minute)
	require.Empty(t, r.record().PendingTerminations)
	require.NotContains(t, r.world.terminated, "i-1")
}

func TestPartOfAScaleUpCounts(t *testing.T) {
	r := wanting(t, 3)
	r.world.joins = func(l provider.Launch) bool { return l.Zone != "b" }
	r.until("the time of the third is over", 11*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Zero(t, r.record().Failures)
	require.Len(t, r.record().PendingTerminations, 1)
	r.until("the missing one is launched again", time.Minute, func() bool { return r.world.launches == 4 })
}

func TestRisingDemandJoinsAnOpenScaleUp(t *testing.T) {
	r := newRig(t)
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: 1}}
	r.until("the first is launched", time.Minute, func() bool { return r.world.launches == 1 })
	first := r.record().Action
	require.NotNil(t, first)

	r.signals.signals[0].Desired = 3
	r.tick()
	r.until("two more are", time.Minute, func() bool { return r.world.launches == 3 })
	require.Equal(t, first.ID, r.record().Action.ID)
	require.Equal(t, 1, r.count(journal.EventScaleUpExtended))

	r.signals.signals[0].Desired = 9 // of which the batch, 5, takes two
	r.until("all of the batch has joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 5, r.world.launches)
	require.Equal(t, 1, r.count(journal.EventScaleUpStarted))
	r.pass(4 * time.Minute)
	require.Equal(t, 5, r.world.launches, "the cooldown is between scale-ups")
}

func TestPlannedNodesAreNotRequestedTwice(t *testing.T) {
	r := newRig(t)
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: 2}}
	throttled := true
	r.world.capacity = func(provider.Launch) error {
		if throttled {
			return refused(provider.Throttled)
		}
		return nil
	}
	r.pass(2 * time.Minute)
	require.Len(t, r.record().Action.Slots, 2)
	throttled = false
	r.until("they have joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 2, r.world.launches)
}

func TestAnOldScaleUpGrowsNoMore(t *testing.T) {
	r := newRig(t)
	first := ""
	r.world.joins = func(l provider.Launch) bool {
		if first == "" {
			first = l.Action
		}
		return l.Action != first
	}
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: 1}}
	r.pass(6 * time.Minute) // more than half of the time to join
	r.signals.signals[0].Desired = 3
	r.pass(3 * time.Minute)
	require.Equal(t, 1, r.world.launches)
	r.until("the next scale-up brings them", 10*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
}

func TestInstanceGoesBeforeItJoins(t *testing.T) {
	for name, leaving := range map[string]time.Duration{"seen to leave": time.Minute, "missed": 0} {
		t.Run(name, func(t *testing.T) {
			r := wanting(t, 1)
			r.world.leaving = leaving
			r.tick()
			r.pass(10 * time.Second)
			r.world.instances["i-1"].endedAt = r.clock.now()
			r.until("the slot has failed", 3*time.Minute, func() bool { return r.count(journal.EventScaleUpFailed) == 1 })
			r.until("another has joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
			require.Equal(t, 1, r.running())
		})
	}
}

func TestPodsGetNodesThatTheyCanRunOn(t *testing.T) {
	r := newRig(t)
	r.world.offers[1].InstanceType = "m6g.large"
	r.pend(2)
	for i := range r.world.pending {
		r.world.pending[i].Pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
	}
	r.pend(1)
	r.world.pending[2].Pod.Name = "anywhere"
	r.until("the nodes have joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	zones := map[string]int{}
	for _, i := range r.world.instances {
		zones[i.Zone]++
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, zones)
}

func TestNoNodeThatNoPodCanUse(t *testing.T) {
	r := newRig(t)
	r.pend(2)
	for i := range r.world.pending {
		r.world.pending[i].Pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
	}
	r.world.capacity = func(l provider.Launch) error {
		if l.Zone == "b" {
			return refused(provider.Capacity)
		}
		return nil
	}
	r.pass(5 * time.Minute)
	for _, i := range r.world.instances {
		require.Fail(t, "useless", "%+v", i.Instance)
	}
}

func TestStartupTimeIsMeasuredFromJoins(t *testing.T) {
	r := wanting(t, 1)
	r.until("it has joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	r.tick()
	told := r.last
	require.Equal(t, 108*time.Second, told.StartupTime, "a tenth less than the two minutes assumed, as it took 30 s")
	require.Equal(t, told.StartupTime, r.signals.seen.StartupTime)
	for n := 2; n < 8; n++ {
		r.spec.Plan.Min = n
		r.until(fmt.Sprintf("%d have joined", n), 30*time.Minute, func() bool { return len(r.record().Joins) == n })
	}
}

// TestAMendedSpecEndsTheBackOff: a failure with another spec is retried at once, also by another process. A
// field that has nothing to do with launches changes nothing.
func TestAMendedSpecEndsTheBackOff(t *testing.T) {
	r := wanting(t, 1)
	r.spec.Plan.MaxFailureBackoff, r.spec.LaunchSpec = plan.DefaultMaxFailureBackoff, "broken"
	r.world.capacity = func(provider.Launch) error { return refused(provider.Invalid) }
	r.pass(3 * time.Hour)
	r.world.capacity = nil
	require.Greater(t, r.record().Failures, 3)
	r.spec.Plan.Max++
	r.tick()
	require.Zero(t, r.world.launches)
	r.spec.LaunchSpec = "mended"
	require.NoError(t, r.pool.Release(t.Context()))
	r.restart()
	r.until("a node is launched", time.Minute, func() bool { return r.world.launches == 1 })
	require.Empty(t, r.record().LaunchSpec, "it is known of failures alone")
}

// TestAMendedDrainPolicyEndsTheBackOff: a node whose drain failed with another policy is drained again.
func TestAMendedDrainPolicyEndsTheBackOff(t *testing.T) {
	r := idle(t, 2)
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "guarded", refused: "its budget allows none"})
	}
	r.until("both drains failed", 30*time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 2 })
	r.spec.Drain.Timeout = 6 * time.Minute
	r.until("the next begins", time.Minute, func() bool { return r.count(journal.EventScaleDownStarted) == 3 })
	require.Empty(t, r.record().FailedDrains)
}

// TestWhatFailedIsKept: the reason of failed launches is reported in each cycle until one works.
func TestWhatFailedIsKept(t *testing.T) {
	for class, event := range map[provider.Class]journal.EventReason{provider.Invalid: journal.EventLaunchFailed,
		provider.Unknown: journal.EventLaunchRetried} {
		t.Run(string(class), func(t *testing.T) {
			r := wanting(t, 2)
			r.world.capacity = func(provider.Launch) error { return refused(class) }
			r.until("a launch was tried", time.Minute, func() bool { return r.count(event) > 0 })
			for range 100 {
				r.pass(15 * time.Second)
				cause := r.record().LaunchError
				if a := r.record().Action; a != nil {
					cause += a.Slots[0].Error
				}
				require.Contains(t, cause, "refused")
			}
			r.world.capacity = nil
			r.until("a node joins", time.Hour, func() bool { return r.count(journal.EventScaledUp) > 0 })
			require.Empty(t, r.record().LaunchError)
		})
	}
}

// TestOffersThatAreNotKnown: the offers of a type that EC2 does not know are unknown, which is not a lack of
// capacity.
func TestOffersThatAreNotKnown(t *testing.T) {
	r := wanting(t, 1)
	r.world.offersErr = refused(provider.Invalid)
	r.pass(5 * time.Minute)
	require.Equal(t, plan.LaunchesUnknown, r.last.Decision.Reason)
	require.Contains(t, r.last.Decision.Message, "Invalid: refused")
	require.ErrorContains(t, r.health, "Invalid: refused")
	require.Equal(t, 1, r.count(journal.EventOffersUnknown))
	r.world.offersErr = nil
	r.until("a node joins", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) > 0 })
}
