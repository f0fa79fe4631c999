package scaler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/scaler"
)

func TestTellsForecastsOfThoseThatGoByOne(t *testing.T) {
	for _, name := range scaler.AllNames() {
		s, err := scaler.New(name, scaler.Setup{
			Threshold: 0.7, Min: 1, Max: 10, Params: scaler.RecommendedParams(), Paper: scaler.PaperParams(),
			Behavior: scaler.RecommendedBehavior(), Startup: 1, Load: rate(100), Cost: 0.01,
		})
		require.NoError(t, err, name)
		f, forecasts := s.(scaler.Forecaster)
		assert.Equal(t, name == "paper" || len(name) > 9 && name[:9] == "foresail-", forecasts, name)
		if forecasts {
			_, ok := f.Forecast()
			assert.False(t, ok, "%s has not looked yet", name)
		}
	}
}

type rate float64

func (r rate) Rate(int64) float64 { return float64(r) }
