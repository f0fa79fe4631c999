package forecaster

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

// scheduled has the feed of a world run with a method, and with a window from one time from now until another.
func (w *world) scheduled(method pipeline.Method, from, until time.Duration, e schedule.Entry) {
	c := config()
	if c.Params.Method = method; method == pipeline.Adaptive {
		c.Params = pipeline.AdaptiveParams()
		c.Params.Threshold, c.Params.Max = 0.7, 20
	}
	e.Name, e.Window = "event", schedule.Once(time.Now().Add(from), time.Now().Add(until))
	c.Schedules = schedule.New(pipeline.Bounds{Min: c.Params.Min, Max: c.Params.Max, Lateness: c.Params.Lateness},
		[]schedule.Entry{e})
	_, err := w.forecaster.Set(key, c)
	require.NoError(w, err)
}

func TestALargerMinimumHoldsAheadOfItsWindow(t *testing.T) {
	for _, method := range []pipeline.Method{pipeline.Holt, pipeline.Adaptive} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, steady(2))
			began := time.Now()
			w.scheduled(method, 2*time.Minute, 3*time.Minute, schedule.Entry{Min: new(12), Max: new(30)})
			horizon := w.get().StartupTime
			w.pass(4*time.Minute, func(s snapshot.Snapshot) {
				require.NotNil(t, s.Bounds)
				if s.Err != nil {
					return
				}
				horizon = s.Forecast.Horizon
				passed := s.At.Sub(began)
				if ahead, ends := 2*time.Minute-horizon, 3*time.Minute; passed < ahead || passed >= ends {
					require.Less(t, s.Decision.Desired, 5, "%s", passed)
					require.Less(t, s.Forecast.ServedLoad, 0.7*5, "%s", passed)
					require.Empty(t, s.ActiveSchedules)
					return
				}
				served, err := serving.Value(serving.LoadTotal, &s)
				require.NoError(t, err)
				require.EqualValues(t, 12*700, served, "an HPA divides it by the threshold")
				require.Equal(t, 12, s.Decision.Desired, "%s", passed)
				require.Equal(t, pipeline.BelowMinimum, s.Decision.Reason)
				require.InDelta(t, 0.7*12, s.Forecast.ServedLoad, 1e-9, "%s", passed)
				require.Equal(t, []string{"event"}, s.ActiveSchedules)
				require.Equal(t, 30, s.Bounds.Max)
			})
			require.NoError(t, w.get().Err)
			assert.Equal(t, 20, w.get().Bounds.Max)
			assert.Greater(t, horizon, 30*time.Second)
		})
	}
}

func TestASmallerMaximumHoldsFromTheBeginningToTheEndOfItsWindow(t *testing.T) {
	for _, method := range []pipeline.Method{pipeline.Holt, pipeline.Adaptive} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 10, steady(6))
			began := time.Now()
			w.scheduled(method, 2*time.Minute, 3*time.Minute, schedule.Entry{Max: new(5)})
			w.pass(4*time.Minute, func(s snapshot.Snapshot) {
				if s.Err != nil {
					return
				}
				passed := s.At.Sub(began)
				if passed < 2*time.Minute || passed >= 3*time.Minute {
					require.Greater(t, s.Decision.Desired, 8, "%s", passed)
					require.Greater(t, s.Forecast.ServedLoad, 0.7*8, "%s", passed)
					return
				}
				require.Equal(t, 5, s.Forecast.Decision.Desired, "%s", passed)
				require.Equal(t, pipeline.AtMaximum, s.Forecast.Decision.Reason)
				require.InDelta(t, 0.7*5, s.Forecast.ServedLoad, 1e-9, "%s", passed)
			})
			require.NoError(t, w.get().Err)
		})
	}
}

// What is not known stays so: bounds are no forecast. But they are there, for those who can enforce them without one.
func TestBoundsAreKnownWithoutAForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.scheduled(pipeline.Adaptive, -time.Minute, time.Hour, schedule.Entry{Min: new(12)})
		for i := range w.fleet.all {
			w.silent[w.fleet.all[i].ID] = true
			w.feed.Fail(w.fleet.all[i].ID, errors.New("connection refused"))
		}
		w.pass(time.Minute, nil)
		require.Error(t, w.get().Err)
		assert.Equal(t, 12, w.get().Bounds.Min)
		assert.Equal(t, []string{"event"}, w.get().ActiveSchedules)

		time.Sleep(time.Hour)
		w.feed.stop(unavailable(snapshot.InvalidSpec, "too many readings"), time.Now())
		assert.Equal(t, 1, w.get().Bounds.Min)
		w.forecaster.Reject(key, config(), errors.New("not a spec"))
		assert.Nil(t, w.get().Bounds, "no one knows what the spec is to be")
	})
}

func TestNothingIsLearnedWhereLearningIsDisabled(t *testing.T) {
	for _, unlearned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, func(at time.Time) float64 { return 2 + math.Sin(float64(at.Unix())/240) })
			w.scheduled(pipeline.Adaptive, 20*time.Minute, 40*time.Minute,
				schedule.Entry{Min: new(1), Unlearned: unlearned})
			w.pass(20*time.Minute, nil)
			before := w.feed.predictor.learned.past.Known()
			w.pass(20*time.Minute, nil)
			if !unlearned {
				require.Greater(t, w.feed.predictor.learned.past.Known(), before+19*time.Minute)
				return
			}
			require.InDelta(t, before.Seconds(), w.feed.predictor.learned.past.Known().Seconds(), 30,
				"but for what came before")
			require.Greater(t, w.feed.predictor.learned.past.Newest(), time.Now().Add(-time.Minute).UnixMilli(),
				"a forecast looks back at it")
			w.pass(40*time.Minute, nil)
			require.Greater(t, w.feed.predictor.learned.past.Known(), before+35*time.Minute)
		})
	}
}
