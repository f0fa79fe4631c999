package forecaster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// clocks are what a test may find a clock that is set to be: with the elapsed time that time.Now
// carries, and without one.
var clocks = map[string]func(*sourcetest.Clock) func() time.Time{
	"with elapsed time": func(c *sourcetest.Clock) func() time.Time { return c.Now },
	"without elapsed time": func(c *sourcetest.Clock) func() time.Time {
		return func() time.Time { return c.Now().Round(0) }
	},
}

// A target that was scaled just before the clock is set may be scaled again when its cooldowns have
// passed, and not hours later.
func TestCooldownsOutliveNoSetClock(t *testing.T) {
	for name, of := range clocks {
		for _, by := range []time.Duration{-2 * time.Hour, -2 * time.Minute, 2 * time.Hour, 2 * time.Minute} {
			t.Run(name+" "+by.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c sourcetest.Clock
					load := 2.0
					w := newWorldAt(t, of(&c), 4, func(time.Time) float64 { return load })
					w.pass(30*time.Second, nil)
					require.NoError(t, w.get().Err)
					w.fleet.start(w.now())
					w.feed.SetReplicas(5)
					w.pass(time.Second, nil)
					c.Set(by)
					w.pass(25*time.Second, nil)
					require.NoError(t, w.get().Err, "it has read all pods for long enough again")
					load = 6
					w.pass(45*time.Second, nil)
					s := w.get()
					require.NoError(t, s.Err)
					assert.Equal(t, pipeline.ScaleUp, s.Decision.Action)
					assert.GreaterOrEqual(t, s.Combined.Desired, 9)
					assert.Equal(t, 5, s.Forecast.Active, "pods that were ready by the clock before")
					load = 1
					w.feed.SetReplicas(9)
					w.pass(5*time.Minute, nil)
					assert.Equal(t, pipeline.ScaleDown, w.get().Decision.Action,
						"no start and no change is hours ahead")
				})
			})
		}
	}
}

// Pods that started and ended within the time by which the clock is set back are no load of later.
func TestPodsOutliveNoClockThatIsSetBack(t *testing.T) {
	for name, of := range clocks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c sourcetest.Clock
				w := newWorldAt(t, of(&c), 4, steady(2))
				w.pass(time.Minute, nil)
				w.fleet.all[0].End = w.now()
				w.fleet.start(w.now())
				w.pass(time.Minute, nil)
				c.Set(-10 * time.Minute)
				w.pass(20*time.Second, nil)
				for range 30 {
					w.pass(time.Minute, nil)
					s := w.get()
					require.NoError(t, s.Err)
					require.Equal(t, 4, s.Forecast.Active)
					require.InDelta(t, 2, s.Forecast.Level, 1e-6)
					require.InDelta(t, 0, s.SampleDelay.Seconds(), 1, "the age of samples is one by this clock")
				}
			})
		})
	}
}

// What was learned in a week is known after the clock was hours ahead, or behind, for a while: in
// memory and in checkpoints.
func TestWhatIsLearnedOutlivesASetClock(t *testing.T) {
	for name, of := range clocks {
		for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
			t.Run(name+" "+by.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c sourcetest.Clock
					w := newWorldAt(t, of(&c), 4, steady(2))
					config := learnedConfig()
					_, err := w.forecaster.Set(key, config)
					require.NoError(t, err)
					w.forecaster.Learned().NoCheckpoint(key)
					w.pass(6*time.Hour, nil)
					known := w.get().Learned
					require.GreaterOrEqual(t, known, 5*time.Hour)
					c.Set(by)
					w.pass(10*time.Minute, nil)
					ahead, ok := w.forecaster.Learned().Checkpoint(key)
					require.True(t, ok, "it goes on to be stored")
					w.forecaster.Learned().Saved(key, ahead)
					c.Set(-by)
					w.pass(10*time.Minute, nil)
					require.NoError(t, w.get().Err)
					assert.GreaterOrEqual(t, w.get().Learned, known-max(0, -by), "but for what lies ahead")
					_, ok = w.forecaster.Learned().Checkpoint(key)
					assert.True(t, ok, "it goes on to be stored")

					again := newWorldAt(t, of(&c), 4, steady(2))
					_, err = again.forecaster.Set(key, config)
					require.NoError(t, err)
					adopted, err := again.forecaster.Learned().Restore(key, ahead.Data, true)
					require.NoError(t, err)
					require.True(t, adopted)
					again.pass(time.Minute, nil)
					assert.GreaterOrEqual(t, again.get().Learned, known-by.Abs())
				})
			})
		}
	}
}

func learnedConfig() Config {
	c := config()
	c.Params = pipeline.AdaptiveParams()
	c.Params.Threshold, c.Params.Max = 0.7, 20
	return c
}
