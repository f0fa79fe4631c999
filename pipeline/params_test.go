package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

func TestDefaults(t *testing.T) {
	p := defaults()
	require.NoError(t, p.Validate())
	// Paper, table 8.
	require.Equal(t, []any{time.Second, 25 * time.Second, 30 * time.Second, 1.2, 10 * time.Second, 1.0, 0.2,
		0.1, 0.2, 0.1, 10.0, 2.0, 0.3},
		[]any{p.Interval, p.StartupTime, p.RedistributionTimeout, p.HorizonMultiplier, p.HorizonMin, p.RedistributionShape,
			p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown, p.TrendAngle, p.RiskFactor, p.ScaleDownMargin})
	// The reference deployment, and what this project adds.
	require.Equal(t, []any{90 * time.Second, 40 * time.Second, 15 * time.Second, 0.1, 4, time.Minute, 30 * time.Second,
		pipeline.Saturation{Zone: 0.02}},
		[]any{p.Window, p.HorizonMax, p.ReactionDelay, p.Spillover, p.MaxStep, p.PendingExpiry, p.StaleAfter, p.Saturation})
}

// The defaults of the adaptive method lack what those of the paper's do, and nothing else.
func TestAdaptiveDefaults(t *testing.T) {
	p := pipeline.AdaptiveParams()
	var fields []string
	for _, e := range fieldErrors(t, p.Validate()) {
		fields = append(fields, e.Field)
	}
	require.Equal(t, []string{"threshold", "maxReplicas"}, fields)
	p.Threshold, p.Max = tau, 20
	require.NoError(t, p.Validate())

	want := defaults()
	want.Method, want.NoiseMargin, want.Lateness, want.Window,
		want.HorizonMultiplier = pipeline.Adaptive, 0.8, 0.01, 5*time.Minute, 1
	want.WindowFollowsHorizon, want.HorizonMax = true, 20*time.Minute
	want.ScaleDownMargin, want.MaxStep = 0.05, 0
	want.Cooldown.DownAfterUp, want.Cooldown.DownAfterDown = 0, 0
	require.Equal(t, want, p)
	require.Empty(t, defaults().Method, "the paper's method is the default")
}

// fieldErrors returns what Validate has joined.
func fieldErrors(t *testing.T, err error) []*pipeline.FieldError {
	t.Helper()
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	var fields []*pipeline.FieldError
	for _, e := range joined.Unwrap() {
		var field *pipeline.FieldError
		require.ErrorAs(t, e, &field)
		fields = append(fields, field)
	}
	return fields
}

// Every precondition is refused with the field's name, the value and what is accepted.
func TestValidation(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	type params = pipeline.Params
	for _, c := range []struct {
		set  func(*params)
		want string
	}{
		{func(p *params) { p.Method = "adaptive" }, "method: adaptive: must be Holt or Adaptive"},
		{func(p *params) { p.NoiseMargin = -0.1 }, "noiseMargin: -0.1: must be between 0 and 10"},
		{func(p *params) { p.NoiseMargin = 10.1 }, "noiseMargin: 10.1: must be between 0 and 10"},
		{func(p *params) { p.NoiseMargin = nan }, "noiseMargin: NaN: must be between 0 and 10"},
		{func(p *params) { p.Threshold = 0 }, "threshold: 0: must be finite and above 0"},
		{func(p *params) { p.Threshold = -0.7 }, "threshold: -0.7: must be finite and above 0"},
		{func(p *params) { p.Threshold = nan }, "threshold: NaN: must be finite and above 0"},
		{func(p *params) { p.Threshold = inf }, "threshold: +Inf: must be finite and above 0"},
		{func(p *params) { p.Threshold = 1e-101 }, "threshold: 1e-101: must be between 1e-100 and 1e+100"},
		{func(p *params) { p.Threshold = 1e101 }, "threshold: 1e+101: must be between 1e-100 and 1e+100"},
		{func(p *params) { p.Model.Kind = "linear" }, "model: linear: must be Linear, Overhead or Quadratic"},
		{func(p *params) { p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.75} },
			"baseline: 0.75: must be at least 0 and below the threshold (0.75)"},
		{func(p *params) { p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: -1} },
			"baseline: -1: must be at least 0 and below the threshold (0.75)"},
		{func(p *params) { p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: nan} },
			"baseline: NaN: must be at least 0 and below the threshold (0.75)"},
		{func(p *params) { p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.6} },
			"baseline: 0.6: must be below threshold/1.3 (0.5769), so that fewer instances are possible"},
		{func(p *params) { p.Min = 0 }, "minReplicas: 0: must be at least 1, or 0 if the source measures the whole target"},
		{func(p *params) { p.Min, p.Max = 5, 4 }, "maxReplicas: 4: must be at least minReplicas (5)"},
		{func(p *params) { p.Interval = 0 }, "sampleInterval: 0s: must be a whole number of milliseconds, at least 100ms"},
		{func(p *params) { p.Interval = -time.Second },
			"sampleInterval: -1s: must be a whole number of milliseconds, at least 100ms"},
		{func(p *params) { p.Interval = 99 * time.Millisecond },
			"sampleInterval: 99ms: must be a whole number of milliseconds, at least 100ms"},
		{func(p *params) { p.Interval = 100_500 * time.Microsecond },
			"sampleInterval: 100.5ms: must be a whole number of milliseconds, at least 100ms"},
		{func(p *params) { p.Window = 1999 * time.Millisecond },
			"window: 1.999s: must be at least two sample intervals (2s)"},
		{func(p *params) { p.Window = 100_001 * time.Second }, "window: 27h46m41s: must be at most 100000 sample intervals"},
		{func(p *params) { p.RedistributionTimeout = -1 }, "redistributionTimeout: -1ns: must be 0s or more"},
		{func(p *params) { p.RedistributionShape = 51 }, "redistributionShape: 51: must be between -50 and 50"},
		{func(p *params) { p.RedistributionShape = nan }, "redistributionShape: NaN: must be between -50 and 50"},
		{func(p *params) { p.LevelUp = 1.01 }, "holt.levelUp: 1.01: must be between 0 and 1"},
		{func(p *params) { p.LevelDown = -0.01 }, "holt.levelDown: -0.01: must be between 0 and 1"},
		{func(p *params) { p.TrendUp = nan }, "holt.trendUp: NaN: must be between 0 and 1"},
		{func(p *params) { p.TrendDown = inf }, "holt.trendDown: +Inf: must be between 0 and 1"},
		{func(p *params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: 0.75} },
			"saturation: 0.75: must be finite and above the threshold (0.75)"},
		{func(p *params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: inf} },
			"saturation: +Inf: must be finite and above the threshold (0.75)"},
		{func(p *params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: nan} },
			"saturation: NaN: must be finite and above the threshold (0.75)"},
		{func(p *params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 1} },
			"saturationZone: 1: must be at least 0 and below 1"},
		{func(p *params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: -0.1} },
			"saturationZone: -0.1: must be at least 0 and below 1"},
		{func(p *params) { p.StartupTime = -time.Second }, "startupTime: -1s: must be 0s or more"},
		{func(p *params) { p.HorizonMultiplier = 0 }, "horizonMultiplier: 0: must be above 0 and at most 100"},
		{func(p *params) { p.HorizonMultiplier = 101 }, "horizonMultiplier: 101: must be above 0 and at most 100"},
		{func(p *params) { p.HorizonMin = -time.Second }, "horizon.min: -1s: must be 0s or more"},
		{func(p *params) { p.HorizonMax = 9 * time.Second }, "horizon.max: 9s: must be at least horizon.min (10s)"},
		{func(p *params) { p.ReactionDelay = -time.Second }, "horizon.reactionDelay: -1s: must be 0s or more"},
		{func(p *params) { p.TrendAngle = 90 }, "trendAngle: 90: must be degrees, at least 0 and below 90"},
		{func(p *params) { p.TrendAngle = -1 }, "trendAngle: -1: must be degrees, at least 0 and below 90"},
		{func(p *params) { p.RiskFactor = 0 }, "riskFactor: 0: must be finite and above 0"},
		{func(p *params) { p.RiskFactor = inf }, "riskFactor: +Inf: must be finite and above 0"},
		{func(p *params) { p.ScaleDownMargin = -0.1 }, "scaleDownMargin: -0.1: must be between 0 and 100"},
		{func(p *params) { p.ScaleDownMargin = nan }, "scaleDownMargin: NaN: must be between 0 and 100"},
		{func(p *params) { p.Spillover = 1 }, "spillover: 1: must be at least 0 and below 1"},
		{func(p *params) { p.Spillover = -0.1 }, "spillover: -0.1: must be at least 0 and below 1"},
		{func(p *params) { p.MaxStep = -1 }, "maxStep: -1: must be 0 (no limit) or more"},
		{func(p *params) { p.PendingExpiry = -1 }, "pendingExpiry: -1ns: must be 0s or more"},
		{func(p *params) { p.StaleAfter = 0 }, "staleAfter: 0s: must be above 0s"},
		{func(p *params) { p.Cooldown.UpAfterUp = -1 }, "cooldown.upAfterUp: -1ns: must be 0s or more"},
		{func(p *params) { p.Cooldown.UpAfterDown = -1 }, "cooldown.upAfterDown: -1ns: must be 0s or more"},
		{func(p *params) { p.Cooldown.DownAfterUp = -1 }, "cooldown.downAfterUp: -1ns: must be 0s or more"},
		{func(p *params) { p.Cooldown.DownAfterDown = -1 }, "cooldown.downAfterDown: -1ns: must be 0s or more"},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := defaults()
			c.set(&p)
			err := p.Validate()
			require.EqualError(t, err, c.want)
			require.Len(t, fieldErrors(t, err), 1)
			made, err := pipeline.New(p)
			require.Nil(t, made)
			require.EqualError(t, err, c.want)
		})
	}
}

// All that is wrong is said at once.
func TestValidationNamesEveryField(t *testing.T) {
	var fields []string
	for _, e := range fieldErrors(t,
		pipeline.Params{Model: pipeline.Model{Kind: "?"}, Interval: -1, Window: -time.Second,
			HorizonMax: -1, MaxStep: -1}.Validate()) {
		fields = append(fields, e.Field)
	}
	require.Equal(t, []string{"threshold", "model", "minReplicas", "sampleInterval", "window", "horizon.max", "staleAfter",
		"horizonMultiplier", "riskFactor", "maxStep"}, fields)
}

// The bounds themselves are accepted, and what a switched-off part says does not matter.
func TestValidationAcceptsBounds(t *testing.T) {
	type params = pipeline.Params
	for name, set := range map[string]func(*params){
		"the least": func(p *params) {
			p.Min, p.Max, p.Interval, p.Window = 1, 1, 100*time.Millisecond, 200*time.Millisecond
			p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = 0, 0, 0, 0
			p.RedistributionTimeout, p.RedistributionShape, p.StartupTime = 0, -50, 0
			p.HorizonMin, p.HorizonMax, p.ReactionDelay, p.TrendAngle, p.ScaleDownMargin, p.Spillover,
				p.MaxStep = 0, 0, 0, 0, 0, 0, 0
			p.PendingExpiry, p.StaleAfter, p.Cooldown = 0, 1, pipeline.Cooldown{}
			p.Saturation = pipeline.Saturation{Enabled: true, Max: math.Nextafter(tau, 1)}
		},
		"the most": func(p *params) {
			p.Window = 100_000 * time.Second
			p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = 1, 1, 1, 1
			p.RedistributionShape, p.HorizonMultiplier, p.ScaleDownMargin = 50, 100, 100
			p.Saturation = pipeline.Saturation{Enabled: true, Max: math.MaxFloat64, Zone: math.Nextafter(1, 0)}
		},
		"no margin of noise":          func(p *params) { p.Method, p.NoiseMargin = pipeline.Adaptive, 0 },
		"the largest margin of noise": func(p *params) { p.Method, p.NoiseMargin = pipeline.Holt, 10 },
		"a saturation that is off":    func(p *params) { p.Saturation = pipeline.Saturation{Max: -1, Zone: 7} },
		"a baseline of another model": func(p *params) { p.Model.Baseline = 7 },
		"a model without a name":      func(p *params) { p.Model.Kind = "" },
		"a baseline that leaves a margin": func(p *params) {
			p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.57}
		},
		"a baseline without scale-down's margin": func(p *params) {
			p.Model, p.ScaleDownMargin = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.74}, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults()
			set(&p)
			require.NoError(t, p.Validate())
		})
	}
}

func TestDefaultCooldowns(t *testing.T) {
	require.Equal(t, pipeline.Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 5 * time.Second,
		DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute},
		pipeline.HoltParams().Cooldown)
}
