package forecaster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// Two PredictedMetrics of one target: each reports its own count, and both the count of the target.
func TestTheLargestOfATargetWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		heap := types.NamespacedName{Namespace: "shop", Name: "heap"}
		c := config()
		c.Origin = "heap"
		other, err := w.forecaster.Set(heap, c)
		require.NoError(t, err)
		other.SetPods(w.fleet)
		other.SetReplicas(4)
		joint := func() snapshot.Combined {
			first := w.get().Combined
			second, _ := w.forecaster.Get(heap)
			assert.Equal(t, first, second.Combined)
			assert.Len(t, w.forecaster.List("shop"), 2)
			assert.Equal(t, first, w.forecaster.List("shop")[1].Combined)
			return first
		}

		w.pass(20*time.Second, nil)
		assert.Equal(t, snapshot.Combined{Desired: 4, DrivenBy: "checkout", Metrics: 2, Undecided: []string{"heap"}},
			joint())
		w.feed.SetReplicas(6)
		assert.Equal(t, snapshot.Combined{Desired: 6, DrivenBy: "heap", Metrics: 2, Undecided: []string{"heap"}},
			joint(),
			"it was scaled up after the forecast")
		w.feed.SetReplicas(4)
		for range 30 {
			w.pass(time.Second, nil)
			for _, i := range w.fleet.all {
				other.Append(i.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: 1.2})
			}
		}
		assert.Equal(t, snapshot.Combined{Desired: 7, DrivenBy: "heap", Metrics: 2}, joint())
		assert.Equal(t, 4, w.get().Decision.Desired, "its own decision stays its own")

		w.forecaster.Remove(heap)
		assert.Equal(t, snapshot.Combined{Desired: 4, DrivenBy: "checkout", Metrics: 1}, w.get().Combined)
		w.forecaster.Remove(key)
		assert.Empty(t, w.forecaster.feeds.byTarget)
	})
}

// A decision needs the replicas of the target, a load does not.
func TestScaleThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.pass(30*time.Second, nil)
		require.True(t, new(w.get()).HasDecision())
		w.feed.LoseReplicas()
		w.pass(20*time.Second, nil)
		w.feed.LoseReplicas()
		require.True(t, new(w.get()).HasDecision(), "a short gap is borne")
		w.pass(12*time.Second, nil)
		s := w.get()
		require.NoError(t, s.Err)
		assert.False(t, s.HasDecision())
		assert.Equal(t, []string{"checkout"}, s.Combined.Undecided)
		w.feed.SetReplicas(4)
		w.pass(time.Second, nil)
		assert.True(t, new(w.get()).HasDecision())
	})
}

// A PredictedMetric in dry run has its own decision, and no say in that of the target. Both ends of
// dry run count at once.
func TestDryRunHasNoSayInTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		trial := types.NamespacedName{Namespace: "shop", Name: "trial"}
		c := config()
		c.Origin, c.DryRun = "trial", true
		other, err := w.forecaster.Set(trial, c)
		require.NoError(t, err)
		other.SetPods(w.fleet)
		other.SetReplicas(4)
		for range 30 {
			w.pass(time.Second, nil)
			for _, i := range w.fleet.all {
				other.Append(i.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: 1.2})
			}
		}
		get := func() snapshot.Snapshot {
			s, ok := w.forecaster.Get(trial)
			require.True(t, ok)
			return s
		}
		assert.True(t, get().DryRun)
		assert.Equal(t, 7, get().Decision.Desired)
		assert.Equal(t, snapshot.Combined{Desired: 4, DrivenBy: "checkout", Metrics: 1}, w.get().Combined)
		assert.Equal(t, w.get().Combined, get().Combined)

		c.DryRun = false
		same, err := w.forecaster.Set(trial, c)
		require.NoError(t, err)
		assert.Same(t, other, same, "what it knows stays")
		assert.False(t, get().DryRun)
		assert.Equal(t, snapshot.Combined{Desired: 7, DrivenBy: "trial", Metrics: 2}, w.get().Combined)
		c.DryRun = true
		_, err = w.forecaster.Set(trial, c)
		require.NoError(t, err)
		assert.True(t, get().DryRun)
		assert.Equal(t, snapshot.Combined{Desired: 4, DrivenBy: "checkout", Metrics: 1}, w.get().Combined)

		w.forecaster.Remove(key)
		assert.False(t, new(get().Combined).Decided(), "no one else has a decision")
		w.forecaster.Reject(trial, c, errors.New("broken"))
		assert.True(t, get().DryRun, "of a rejected spec too")
	})
}
