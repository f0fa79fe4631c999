package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/simulated"
)

func after(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// TestALaunchThatNeverJoins ends with the instance terminated, and the pool waiting before it tries again.
func TestALaunchThatNeverJoins(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "never-joins")
	p.fault(simulated.FaultNeverJoin, "true")
	p.create(2, 2, func(s *v1alpha1.WorkerPoolSpec) {
		s.Join = v1alpha1.JoinPolicy{Timeout: after(4 * time.Second), KeepFailedFor: after(3 * time.Second)}
	})
	assert.Contains(t, p.event(journal.EventJoinFailed), "was not Ready within 4s")
	assert.Contains(t, p.event(journal.EventScaleUpFailed), "None of 2 nodes joined")
	assert.Contains(t, p.decides(plan.BackingOff), "nothing joined in the last 1 scale-up")
	p.until("both instances terminated", func() bool { return len(p.instances()) == 0 })
	fates := p.fates()
	assert.Len(t, fates, 2, "no other is launched meanwhile")
	for id, f := range fates {
		assert.True(t, f.JoinFailed, "%s is marked for people", id)
		assert.GreaterOrEqual(t, f.EndsAt.Sub(f.Launched), 7*time.Second, "%s is kept for a while", id)
	}
	assert.Len(t, p.told(journal.EventScaleUpStarted), 1)
}

// TestPartOfALaunchJoins has one of two instances never join: the other counts, and a third takes its place.
func TestPartOfALaunchJoins(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "partial")
	p.create(2, 2, func(s *v1alpha1.WorkerPoolSpec) {
		s.Provider.Simulated.JoinDelay = after(8 * time.Second)
		s.Join = v1alpha1.JoinPolicy{Timeout: after(25 * time.Second), KeepFailedFor: after(time.Second)}
	})
	p.until("two instances", func() bool { return len(p.instances()) == 2 })
	failing := p.instances()[0].ID
	p.annotate(failing, simulated.AnnotationNeverJoin, "true")
	p.event(journal.EventJoinFailed)
	assert.Contains(t, p.event(journal.EventScaledUp), "1 of 2 nodes joined")
	left := p.settled(2)
	assert.NotContains(t, ids(left), failing)
	assert.Len(t, p.fates(), 3)
	assert.Empty(t, p.told(journal.EventScaleUpFailed))
}

// TestNoCapacityInOneZone has the other zone take what that one cannot.
func TestNoCapacityInOneZone(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "exhausted")
	p.fault(simulated.FaultExhausted, "a/*/*")
	p.create(3, 3, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Zones = []string{"a", "b"} })
	for _, i := range p.settled(3) {
		assert.Equal(t, "b", i.Zone)
	}
	assert.Contains(t, p.event(journal.EventLaunchFailed), "is left in zone a")
	assert.Contains(t, p.event(journal.EventScaledUp), "3 of 3 nodes joined")
	cooling := p.record().Cooling
	require.NotEmpty(t, cooling)
	for _, c := range cooling {
		assert.Equal(t, "a", c.Zone)
	}
}

// TestAnInstanceIsTerminatedByHand has the pool launch another, and delete the Node that is left.
func TestAnInstanceIsTerminatedByHand(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "by-hand")
	p.create(2, 3, nil)
	before := p.settled(2)
	gone := before[0]
	p.annotate(gone.ID, simulated.AnnotationTerminate, "true")
	p.event(journal.EventNodeDeleted)
	left := p.settled(2)
	assert.NotContains(t, ids(left), gone.ID)
	assert.NotContains(t, p.nodes(), gone.ProviderID)
	assert.Len(t, p.fates(), 3, "one takes its place")
	assert.Empty(t, p.told(journal.EventTerminated), "the pool has terminated nothing")
}
