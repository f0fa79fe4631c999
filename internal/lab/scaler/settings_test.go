package scaler_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/pipeline"
)

func TestScalersWithAForecastReturnIt(t *testing.T) {
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

// TestSettingsAreTheDefaultsOfTheAPI compares with a PredictedMetric that gives nothing but what is
// required, and with the defaults of the pipeline.
func TestSettingsAreTheDefaultsOfTheAPI(t *testing.T) {
	for method, c := range map[string]struct{ simulated, pipeline pipeline.Params }{
		"":           {scaler.RecommendedParams(), pipeline.AdaptiveParams()},
		", holt: {}": {scaler.PaperParams(), pipeline.HoltParams()},
	} {
		spec, err := params.ParseSpec([]byte("{threshold: 700m, maxReplicas: 20, saturation: 1" + method + "}"))
		require.NoError(t, err)
		api, err := params.FromSpec(spec)
		require.NoError(t, err)
		api.Threshold, api.Max = 0, 0
		assert.Equal(t, api, c.simulated, method)
		c.pipeline.Saturation, c.pipeline.Method = c.simulated.Saturation, c.simulated.Method
		assert.Equal(t, c.pipeline, c.simulated, method)
	}
}

func TestBehaviorIsTheOneOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/hpa.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)\nbehavior:\n.*?```").Find(page)
	require.NotEmpty(t, block)
	var documented struct {
		Behavior autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
	}
	require.NoError(t, yaml.UnmarshalStrict(block[:len(block)-3], &documented))
	assert.Equal(t, asYAML(t, documented.Behavior), asYAML(t, *scaler.RecommendedBehavior()))
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
