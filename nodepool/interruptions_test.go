package nodepool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// take makes the cloud reclaim an instance in two minutes.
func (r *rig) take(id string) provider.Message {
	m := provider.Message{InstanceID: id, Kind: provider.MessageInterruption,
		Deadline: r.clock.now().Add(2 * time.Minute), Handle: "h-" + id}
	r.pool.Notify(m)
	return m
}

func TestInterruptedWorkerIsReplacedAndDrained(t *testing.T) {
	r := newRig(t)
	r.world.add(3)
	r.spec.Plan.Min = 3
	r.tick()
	r.load("node-i-old1", &fakePod{name: "a"}, &fakePod{name: "bare", blocks: "has no controller"})
	m := r.take("i-old1")
	r.tick()
	require.Equal(t, []provider.Message{m}, r.notices.done)
	record := r.record()
	require.Len(t, record.Interruptions, 1)
	require.True(t, record.Interruptions[0].ReplacementSettled)
	require.Equal(t, state.ActionUp, record.Action.Kind)
	require.Equal(t, 1, r.world.launches, "at once")

	r.until("it is drained and terminated", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.GreaterOrEqual(t, r.clock.now(), m.Deadline.Add(-act.ForceBefore),
		"the pod that blocks is left until the last moment")
	r.until("it is over", time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.Equal(t, []string{"node-i-1", "node-i-old0", "node-i-old2"}, r.nodeNames())
	r.clean()
}

func TestInterruptionIsSavedBeforeItsMessageIsDeleted(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.tick()
	r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
	r.store.before = func(state.Record) error { return errors.New("down") }
	r.take("i-old0")
	r.tick()
	require.Empty(t, r.notices.done)
	r.store.before = nil
	r.tick()
	require.Len(t, r.notices.done, 1)
	require.Len(t, r.record().Interruptions, 1)
	r.take("i-old0")
	r.tick()
	require.Len(t, r.notices.done, 2, "the same again")
	require.Len(t, r.record().Interruptions, 1)
}

func TestMessagesAboutOtherInstances(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.world.listErr = errors.New("down")
	r.take("i-other")
	r.tick()
	require.Empty(t, r.notices.done, "the owner of the instance is unknown")
	r.world.listErr = nil
	r.tick()
	require.Len(t, r.notices.done, 1)
	require.Empty(t, r.record().Interruptions)
}

func TestInterruptionDuringScaleUp(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.Plan.Min = 3
	r.tick()
	require.Len(t, r.record().Action.Slots, 1)
	r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
	r.take("i-old0")
	r.tick()
	r.tick()
	slots := r.record().Action.Slots
	require.Len(t, slots, 2, "the open scale-up has a further slot")
	require.True(t, r.record().Interruptions[0].ReplacementSettled)
	r.until("both have joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	r.until("the other has gone", 3*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.Equal(t, 3, r.running())
}

func TestInterruptionDuringScaleDown(t *testing.T) {
	r := idle(t, 3)
	r.spec.Plan.Min = 2
	r.load("node-i-old0", &fakePod{name: "slow", refused: "no"})
	r.removing(state.RemovalDraining)
	r.take("i-old1")
	r.tick()
	require.Empty(t, r.world.nodes["node-i-old0"].mark, "it is needed again")
	r.until("the other has gone", 3*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	r.pass(time.Minute)
	require.Equal(t, 2, r.running())
	require.NotContains(t, r.world.terminated, "i-old0")
	r.clean()
}

func TestInterruptedTargetOfAScaleDown(t *testing.T) {
	r := idle(t, 3)
	r.spec.Plan.Min = 2
	r.load("node-i-old0", &fakePod{name: "slow", refused: "no"})
	r.removing(state.RemovalDraining)
	r.take("i-old0")
	r.until("it has gone", 3*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	r.pass(time.Minute)
	require.Zero(t, r.world.launches, "nothing desires it")
	require.Equal(t, []string{"node-i-old1", "node-i-old2"}, r.nodeNames())
	r.clean()
}

func TestNeverTerminatedWithPodsWhateverTheDeadline(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.world.podGrace = 10 * time.Minute
	r.tick()
	r.load("node-i-old0", &fakePod{name: "slow"})
	r.take("i-old0")
	r.pass(5 * time.Minute)
	require.Empty(t, r.world.terminated, "the cloud takes it as it is")
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.until("it has gone", 3*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.NotContains(t, r.nodeNames(), "node-i-old0")
}

func TestExpiredNotice(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.world.podGrace = time.Hour
	r.tick()
	r.load("node-i-old0", &fakePod{name: "slow"})
	r.take("i-old0")
	r.until("it takes pods again", 15*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	r.clean()
	require.Empty(t, r.world.terminated)
}

func TestInterruptionBeforeTheNodeJoins(t *testing.T) {
	r := wanting(t, 1)
	r.world.leaving = time.Minute
	r.tick()
	r.take("i-1")
	r.tick()
	r.tick()
	require.Equal(t, 2, r.world.launches)
	r.world.instances["i-1"].endedAt = r.clock.now()
	r.until("it is over", 3*time.Minute,
		func() bool { return len(r.record().Interruptions) == 0 && r.record().Action == nil })
	require.Equal(t, 1, r.running())
	require.Equal(t, 1, r.count(journal.EventScaledUp))
}

// TestNodeOfAnUnseenInterruption: the cluster cannot be read from when the notice comes until the
// cloud has reclaimed the instance.
func TestNodeOfAnUnseenInterruption(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.tick()
	r.world.observeErr = errors.New("the API server is away")
	r.take("i-old0")
	r.tick()
	require.Empty(t, r.record().Interruptions[0].Node)
	delete(r.world.nodes["node-i-old0"].object.Labels, cluster.LabelPool)
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.pass(3 * time.Minute)
	r.restart() // so that no process remembers the instance when the cluster can be read again
	r.world.observeErr = nil
	r.pass(journal.LeaseTerm + time.Minute)
	r.until("it is over", 3*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.Empty(t, r.world.nodes)
}

func TestImpossibleDeadlines(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"none": 0, "past": -time.Hour, "far": time.Hour,
		"of a clock three minutes ahead": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(1)
			r.tick()
			r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
			m := provider.Message{InstanceID: "i-old0", Kind: provider.MessageInterruption}
			if ahead != 0 {
				m.Deadline = r.clock.now().Add(ahead)
			}
			r.pool.Notify(m)
			r.tick()
			require.Equal(t, r.clock.now().Add(fleet.NoticeTime), r.record().Interruptions[0].Deadline)
		})
	}
}

func TestRebalanceRecommendationsAreReported(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.tick()
	r.pool.Notify(provider.Message{InstanceID: "i-old0", Kind: provider.MessageRebalance},
		provider.Message{InstanceID: "i-old0", Kind: provider.MessageStateChange})
	r.pass(time.Minute)
	require.Equal(t, 1, r.count(journal.EventRebalance))
	require.False(t, r.world.nodes["node-i-old0"].cordon)
	require.Len(t, r.notices.done, 2)
	require.Empty(t, r.world.terminated)
}

func TestNoMoreReplacementsThanDesired(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.spec.Plan.Min, r.spec.Plan.MaxBatchUp = 1, 1
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: 3, Fits: 3}}
	r.tick()
	r.take("i-old0")
	r.take("i-old1")
	r.take("i-old2")
	r.pass(10 * time.Minute)
	require.Equal(t, 2, r.world.launches, "three are desired")
	require.Equal(t, 3, r.running())
}

// The nodes of the control plane may be unknown when a notice comes.
func TestControlPlaneIsNotDrainedByANotice(t *testing.T) {
	r := newRig(t)
	r.world.add(3)
	r.tick()
	r.world.nodes["node-i-old0"].object.Labels["node-role.kubernetes.io/control-plane"] = ""
	r.load("node-i-old0", &fakePod{name: "kube-system/etcd"})
	r.world.observeErr = errDown
	r.take("i-old0")
	r.tick()
	require.Len(t, r.record().Interruptions, 1)
	r.world.observeErr = nil
	r.until("it is released", time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	r.pass(10 * time.Minute)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.world.nodes["node-i-old0"].pods[0].leaves)
	r.clean()
}

// SQS may redeliver a message after everything is done, and the cloud lists a reclaimed instance for some time.
func TestRedeliveredNotice(t *testing.T) {
	for name, c := range map[string]struct{ leaving, late time.Duration }{
		"listed still": {leaving: 10 * time.Minute}, "not listed any more": {late: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(3)
			r.spec.Plan.Min = 3
			r.world.leaving = c.leaving
			r.tick()
			m := r.take("i-old1")
			r.until("it is over", 5*time.Minute,
				func() bool { return len(r.record().Interruptions) == 0 && r.record().Action == nil })
			require.Equal(t, 1, r.world.launches)
			r.pass(c.late)
			r.pool.Notify(m)
			r.pass(10 * time.Minute)
			require.Equal(t, 1, r.world.launches)
			require.Equal(t, 3, r.running())
			require.Len(t, r.notices.done, 2)
			require.Equal(t, 1, r.count(journal.EventInterrupted))
		})
	}
}

func TestInterruptionsResume(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.tick()
	r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
	r.take("i-old0")
	r.tick()
	r.restart()
	r.tick()
	r.clock.advance(journal.LeaseTerm)
	r.until("it is over", 3*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.Contains(t, r.world.terminated, "i-old0")
	require.Equal(t, provider.Unknown, provider.ClassOf(errLost))
}

// While the instances are unknown, SQS redelivers the messages about them.
func TestMessagesThatMustWait(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.world.listErr = errDown
	r.tick()
	var last provider.Message
	for i := range 100 {
		m := r.take("i-old0")
		m.Handle = fmt.Sprintf("h-%d", i)
		last = m
		r.pool.Notify(m)
		<-r.pool.woken
		r.tick()
		require.Empty(t, r.pool.woken, "a cloud that does not answer is not queried sooner")
		require.False(t, r.pool.inbox.hasFresh())
		require.Len(t, r.pool.inbox.deferred, 1)
		r.clock.advance(20 * time.Second)
	}
	r.world.listErr = nil
	r.tick()
	require.Equal(t, 1, r.count(journal.EventInterrupted))
	require.Equal(t, []provider.Message{last}, r.notices.done)
}

// Of two messages of one kind about an instance, the newer one is kept.
func TestNewerMessagesReplaceOlderOnes(t *testing.T) {
	r := newRig(t)
	older, newer := provider.Message{InstanceID: "i-1", Kind: provider.MessageInterruption, Handle: "1"},
		provider.Message{InstanceID: "i-1", Kind: provider.MessageInterruption, Handle: "2"}
	advice := provider.Message{InstanceID: "i-1", Kind: provider.MessageRebalance, Handle: "3"}
	r.pool.Notify(newer, advice)
	r.pool.inbox.deferMessages(older)
	got, err := r.pool.inbox.take()
	require.NoError(t, err)
	require.Equal(t, []provider.Message{newer, advice}, got)
	r.pool.inbox.deferMessages(older)
	r.pool.Notify(newer)
	got, err = r.pool.inbox.take()
	require.NoError(t, err)
	require.Equal(t, []provider.Message{newer}, got)
}
