package forecaster

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// teeth is a load that turns as soon as its rise has become a trend.
func teeth(at time.Time) float64 { return 2 + math.Abs(float64(at.Unix()%80)-40)/20 }

func adaptiveConfig() Config {
	c := config()
	c.Params = pipeline.AdaptiveParams()
	c.Params.Threshold, c.Params.Max, c.Params.StartupTime = 0.7, 20, 40*time.Second
	c.MeasureStartup = false
	return c
}

// Forecasts are compared with what came, and the figures exposed once there are some.
func TestForecastsAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, teeth)
		_, err := w.forecaster.Set(key, adaptiveConfig())
		require.NoError(t, err)
		registry := prometheus.NewRegistry()
		registry.MustRegister(&collector{w.forecaster})
		figures := func() int {
			n, err := testutil.GatherAndCount(registry, "foresail_forecast_error_ratio", "foresail_forecast_late_ratio")
			require.NoError(t, err)
			return n
		}
		w.pass(30*time.Second, nil)
		require.NoError(t, w.get().Err)
		require.Zero(t, figures(), "nothing has come due")
		w.pass(5*time.Minute, nil)
		assert.Greater(t, w.get().Accuracy.LastHour.Ratio(), 1.1, "the load turns whenever its trend is believed")
		w.pass(40*time.Minute, nil)
		a := w.get().Accuracy
		assert.Less(t, a.LastHour.Ratio(), 0.9, "that it turns has been learned")
		assert.Greater(t, a.LastDay.Judged, 35*time.Minute)
		assert.Equal(t, 4, figures(), "over an hour and a day")
	})
}

// After a gap nothing is judged that was forecast before it.
func TestAGapIsNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, teeth)
		w.pass(45*time.Minute, nil)
		before := w.get().Accuracy
		assert.Greater(t, before.LastHour.Judged, 20*time.Minute, "the paper's method is judged as well")
		time.Sleep(10 * time.Minute)
		w.forecaster.runAll()
		w.pass(30*time.Second, nil)
		require.NoError(t, w.get().Err)
		assert.Equal(t, before, w.get().Accuracy, "nothing has come due")
	})
}
