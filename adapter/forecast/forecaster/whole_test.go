package forecaster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// newWhole returns a forecaster of a load that is measured as a whole, 50 a pod, from and to zero,
// and its target's pods.
func newWhole(t *testing.T, pods int, load func(time.Time) float64) *world {
	p := pipeline.AdaptiveParams()
	p.Whole, p.Threshold, p.Min, p.Max = true, 50, 0, 20
	c := config()
	c.Params, c.Source = p, "prometheus"
	f := New(time.Now, prometheus.NewRegistry(), Options{})
	feed, err := f.Set(key, c)
	require.NoError(t, err)
	w := &world{T: t, forecaster: f, feed: feed, fleet: &fleet{}, load: load}
	for range pods {
		w.fleet.start(time.Now().Add(-time.Hour))
	}
	feed.SetPods(w.fleet)
	feed.SetReplicas(pods)
	return w
}

// idle lets time go by in which nothing is read.
func (w *world) idle(d time.Duration) {
	for range int(d / time.Second) {
		time.Sleep(time.Second) // virtual time
		w.forecaster.runAll()
	}
}

// measure lets time go by, in each second of which the load is read.
func (w *world) measure(d time.Duration) {
	for range int(d / time.Second) {
		time.Sleep(time.Second) // virtual time
		w.feed.Append(source.WholeTarget, pipeline.Sample{T: time.Now().UnixMilli(), V: w.load(time.Now())})
		w.forecaster.runAll()
	}
}

func TestWholeLoadWakesATargetAtZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := 0.0
		w := newWhole(t, 0, func(time.Time) float64 { return load })
		w.forecaster.runAll()
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
		w.measure(5 * time.Second)
		assert.Equal(t, snapshot.WarmingUp, w.reason())
		w.measure(time.Minute)
		s := w.get()
		require.NoError(t, s.Err)
		assert.True(t, s.Whole)
		assert.Zero(t, s.Forecast.ServedLoad)
		assert.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: 0, Action: pipeline.Hold,
			Reason: pipeline.Idle}, s.Decision)

		load = 120
		w.measure(10 * time.Second)
		s = w.get()
		assert.Equal(t, pipeline.Activated, s.Decision.Reason)
		assert.GreaterOrEqual(t, s.Decision.Desired, 3)
		assert.Equal(t, s.Decision.Desired, s.Combined.Desired)
		assert.GreaterOrEqual(t, s.Forecast.ServedLoad, 120.0)

		for range 3 {
			w.fleet.start(time.Now())
		}
		w.feed.SetReplicas(3)
		w.measure(2 * time.Minute)
		s = w.get()
		assert.Equal(t, 3, s.Forecast.Active)
		assert.Equal(t, 3, s.Decision.Desired)
		assert.InDelta(t, 40, s.Forecast.LoadNow, 0.1)

		load = 0
		w.measure(6 * time.Minute)
		s = w.get()
		assert.Equal(t, pipeline.Idle, s.Decision.Reason)
		assert.Zero(t, s.Decision.Desired)
	})
}

func TestWholeLoadThatIsNotReadIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, 2, steady(80))
		w.measure(time.Minute)
		require.NoError(t, w.get().Err)
		assert.InDelta(t, 100, w.get().Forecast.ServedLoad, 1e-9, "what two pods carry, which is enough")

		w.idle(20 * time.Second)
		assert.NoError(t, w.get().Err, "the last samples count on")
		w.feed.Append(source.WholeTarget, pipeline.Sample{T: time.Now().Add(time.Hour).UnixMilli(), V: 1})
		w.forecaster.runAll()
		s := w.get()
		require.ErrorContains(t, s.SourceErr, "in the future")
		assert.Empty(t, s.Failing, "it is no pod's")
		w.idle(15 * time.Second)
		assert.Equal(t, snapshot.Stale, w.reason())
		w.measure(5 * time.Second)
		assert.Equal(t, snapshot.WarmingUp, w.reason(), "nothing is assumed of the gap")
		w.measure(10 * time.Second)
		assert.NoError(t, w.get().Err)
	})
}

func TestWholeLoadIsOneSeriesOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, 500, steady(80))
		w.measure(20 * time.Second)
		require.NoError(t, w.get().Err)
		assert.EqualValues(t, 1, w.feed.footprint.keeping(w.feed.settings.Load(), &w.feed.target, time.Now()).instances)
	})
}

func TestTargetAtZeroSaysWhyItCannotBeWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, steady(0))
		w.forecaster.runAll()
		var why *snapshot.Unavailable
		require.True(t, errors.As(w.get().Err, &why))
		assert.Equal(t, snapshot.NoReadyPods, why.Reason)
		assert.Contains(t, why.Message, "scaled to 0 replicas")
		assert.Contains(t, why.Message, "scope Target")
		w.feed.SetReplicas(1)
		w.forecaster.runAll()
		require.True(t, errors.As(w.get().Err, &why))
		assert.Equal(t, "the target has no ready pod", why.Message)
	})
}
