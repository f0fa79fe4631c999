package forecaster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/pipeline"
)

// While changes of the pods are not seen, pods that have started since carry a part of the load that is
// not read.
func TestForecastsOfPodsThatAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 1.0 // the share of the load that the known pods carry
		w := newWorld(t, 10, func(time.Time) float64 { return 6.8 * seen })
		_, err := w.forecaster.Set(key, learnedConfig())
		require.NoError(t, err)
		w.pass(2*time.Minute, nil)
		before := w.get()
		require.NoError(t, before.Err)
		began := time.Now()
		w.fleet.lost, seen = began, 0.5
		w.pass(30*time.Second, func(s snapshot.Snapshot) {
			require.NoError(t, s.Err)
			assert.GreaterOrEqual(t, s.Forecast.ServedLoad, before.Forecast.ServedLoad)
			assert.GreaterOrEqual(t, s.Combined.Desired, before.Combined.Desired)
			assert.Equal(t, began, s.PodsLost)
			_, err := serving.Value(serving.Load, &s)
			require.ErrorContains(t, err, "the load cannot be divided by them")
		})
		w.pass(5*time.Second, nil)
		assert.Equal(t, snapshot.PodsStale, w.reason())
		assert.ErrorContains(t, w.get().Err, "connection refused")
		w.pass(5*time.Minute, nil)
		assert.Equal(t, snapshot.PodsStale, w.reason())

		for range 10 {
			w.fleet.start(began.Add(5 * time.Second))
		}
		w.fleet.lost, seen = time.Time{}, 1
		w.feed.SetReplicas(20)
		w.pass(5*time.Minute, func(s snapshot.Snapshot) {
			if s.Err == nil {
				assert.InDelta(t, 6.8, s.Forecast.Level, 0.7, "neither half of it nor a jump")
			}
		})
		require.NoError(t, w.get().Err)
	})
}

// TestShortTimesInWhichPodsAreNotSeenDoNotAddUp has each end before the pods that came meanwhile have been read.
func TestShortTimesInWhichPodsAreNotSeenDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, steady(5))
		c := learnedConfig()
		c.Interval, c.Params.StaleAfter = 20*time.Second, 45*time.Second
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(2*time.Minute, nil)
		for range 5 {
			w.fleet.lost = time.Now()
			w.pass(time.Second, func(s snapshot.Snapshot) { require.NoError(t, s.Err) })
			w.fleet.lost = time.Time{}
			w.pass(29*time.Second, func(s snapshot.Snapshot) { require.NoError(t, s.Err) })
		}
		w.fleet.lost = time.Now()
		w.pass(47*time.Second, nil)
		assert.Equal(t, snapshot.PodsStale, w.reason())
		for range 5 { // what came meanwhile is read while short ones go on
			w.fleet.lost = time.Time{}
			w.pass(5*time.Second, nil)
			w.fleet.lost = time.Now()
			w.pass(time.Second, nil)
			assert.Equal(t, snapshot.PodsStale, w.reason())
		}
		w.fleet.lost = time.Time{}
		w.pass(29*time.Second, nil)
		require.NoError(t, w.get().Err)
	})
}

// A load that is measured as a whole needs no pods, but what depends on their number does.
func TestWholeLoadWhosePodsAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, 2, steady(80))
		w.measure(time.Minute)
		w.fleet.lost = time.Now()
		w.measure(5 * time.Minute)
		s := w.get()
		require.NoError(t, s.Err)
		assert.InDelta(t, 100, s.Forecast.ServedLoad, 1e-9)
		assert.False(t, s.HasDecision(), "replicas are watched as pods are")
	})
}

func TestFloor(t *testing.T) {
	var l floor
	begun := time.Now()
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 2, 4
	of := func(serve float64, desired, target int) pipeline.Forecast {
		return pipeline.Forecast{ServedLoad: serve, Target: target, Decision: pipeline.Decision{Desired: desired}}
	}
	var at time.Duration
	note := func(after time.Duration, f pipeline.Forecast) {
		at = after
		l.recordServed(&f, begun.Add(at))
	}
	note(0, of(5, 9, 9))
	note(floorSpan+time.Second, of(2, 4, 9))
	f := of(1, 1, 2)
	l.raise(&f, &p, begun.Add(at))
	assert.Equal(t, 5.0, f.ServedLoad)
	assert.Equal(t, pipeline.Decision{Desired: 3, Action: pipeline.ScaleUp, Reason: pipeline.PodsUnseen}, f.Decision)
	note(2*floorSpan+2*time.Second, of(1, 2, 4))
	f = of(1, 1, 4)
	l.raise(&f, &p, begun.Add(at))
	assert.Equal(t, 2.0, f.ServedLoad)
	assert.Equal(t, pipeline.Decision{Desired: 4, Action: pipeline.Hold, Reason: pipeline.PodsUnseen}, f.Decision)
	f = of(8, 7, 4)
	l.raise(&f, &p, begun.Add(at))
	assert.Equal(t, of(8, 7, 4), f, "more is needed for what is seen")
	note(3*floorSpan+3*time.Second, of(100, 2, 4))
	f = of(1, 1, 2)
	l.raise(&f, &p, begun.Add(at))
	assert.Equal(t, 4, f.Decision.Desired, "the maximum")
}

// TestFloorIsOfTheLastMinutes has pods lost after a night without any, of which the evening before says nothing.
func TestFloorIsOfTheLastMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, before := range map[string]time.Duration{
			"right after the first forecast": time.Second, "later": 40 * time.Second,
		} {
			load := 34.0
			w := newWorld(t, 10, func(time.Time) float64 { return load })
			_, err := w.forecaster.Set(key, learnedConfig())
			require.NoError(t, err)
			w.pass(3*time.Minute, nil)
			require.Greater(t, w.get().Forecast.ServedLoad, 33.0)
			for i := range w.fleet.all {
				w.fleet.all[i].End = time.Now()
			}
			w.pass(14*time.Minute, nil)
			require.Error(t, w.get().Err)
			load = 1
			w.fleet.start(time.Now())
			w.feed.SetReplicas(1)
			for w.get().Err != nil {
				w.pass(time.Second, nil)
			}
			w.pass(before, nil)
			w.fleet.lost = time.Now()
			w.pass(20*time.Second, func(s snapshot.Snapshot) {
				require.NoError(t, s.Err, name)
				require.Less(t, s.Forecast.ServedLoad, 5.0, name)
			})
		}
	})
}

func TestFloorHasAnAge(t *testing.T) {
	begun := time.Now()
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max, p.StaleAfter = 1, 100, 30*time.Second
	raised := func(l floor, after time.Duration) float64 {
		f := pipeline.Forecast{ServedLoad: 1}
		l.raise(&f, &p, begun.Add(after))
		return f.ServedLoad
	}
	var l floor
	l.recordServed(&pipeline.Forecast{ServedLoad: 50}, begun)
	assert.Equal(t, 50.0, raised(l, floorSpan+p.StaleAfter))
	assert.Equal(t, 1.0, raised(l, floorSpan+p.StaleAfter+time.Second))
	assert.Equal(t, 1.0, raised(l, -time.Hour), "the clock was set back")
	l.recordServed(&pipeline.Forecast{ServedLoad: 2}, begun.Add(2*floorSpan))
	assert.Equal(t, 50.0, raised(l, 2*floorSpan))
	l.recordServed(&pipeline.Forecast{ServedLoad: 3}, begun.Add(5*floorSpan))
	assert.Equal(t, 3.0, raised(l, 5*floorSpan))
}

// TestFloorIsOfTheParameters has the threshold changed to another unit, and then pods lost.
func TestFloorIsOfTheParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scale := 1.0
		w := newWorld(t, 10, func(time.Time) float64 { return 5 * scale })
		c := learnedConfig()
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(2*time.Minute, nil)
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.fleet.lost, scale = time.Now(), 0.5
		w.pass(20*time.Second, nil)
		require.Greater(t, w.get().Forecast.ServedLoad, 4.9, "nothing has changed but that it was set again")
		c.Params.Threshold *= 2
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(time.Second, nil)
		require.NoError(t, w.get().Err)
		assert.Less(t, w.get().Forecast.ServedLoad, 4.9)
	})
}
