package gate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

func params(change func(*pipeline.Params)) *pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 50, 20
	change(&p)
	return &p
}

func TestLimits(t *testing.T) {
	plain := params(func(*pipeline.Params) {})
	saturated := params(func(p *pipeline.Params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: 100} })
	quadratic := params(func(p *pipeline.Params) { p.Model.Kind = pipeline.Quadratic })
	overhead := params(func(p *pipeline.Params) { p.Model = pipeline.Model{Kind: pipeline.Overhead, Baseline: 40} })
	large := params(func(p *pipeline.Params) { p.Threshold = 1e100 })
	for _, test := range []struct {
		name    string
		p       *pipeline.Params
		counted bool
		v       float64
		want    string // what the error has; "": the reading is possible
	}{
		{"zero", plain, false, 0, ""},
		{"far above the threshold", plain, false, 1e6, ""},
		{"NaN", plain, false, math.NaN(), "a reading is NaN: must be a finite number"},
		{"infinite", plain, false, math.Inf(1), "a reading is +Inf"},
		{"infinite below", plain, false, math.Inf(-1), "a reading is -Inf"},
		{"negative", plain, false, -1, "a reading is -1: must be 0 or more, as a negative load is taken for unknown"},
		{"hardly negative", plain, false, -1e-6, "a reading is -1e-06"},
		{"more than replicas can be counted", plain, false, 50 * 1e10,
			"a reading is 5e+11: must be at most 1.07374e+11, as no number of replicas carries more"},
		{"the largest number", plain, false, math.MaxFloat64, "no number of replicas carries more"},
		{"at the maximum", saturated, false, 100, ""},
		{"rounded", saturated, false, 109, ""},
		{"a rate that was read late", saturated, true, 149, ""},
		{"a rate above the maximum", saturated, true, 151, "a reading is 151: must be at most saturation (100)"},
		{"above the maximum", saturated, false, 112,
			"a reading is 112: must be at most saturation (100); raise that, or leave it out, if the metric can be higher"},
		{"negative of a square", quadratic, false, -3, "must be 0 or more"},
		{"a square", quadratic, false, 50 * 1000, ""},
		{"a square that is too large", quadratic, false, 50 * 1e5, "no number of replicas carries more"},
		{"below the baseline", overhead, false, 1, ""},
		{"a sum of it is not finite in float32", large, false, 2e30, "must be at most 1e+30"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := LimitsOf(test.p, test.counted).Check(test.v)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			assert.InDelta(t, test.v, v, 0)
		})
	}
}

func TestRoundingOfZeroIsZero(t *testing.T) {
	for _, test := range []struct {
		threshold, v float64
		zero         bool
	}{
		{50, -1e-12, true},
		{1e9, -1.1920928955078125e-07, true}, // the difference of two sums of bytes
		{1e8, -1.1920928955078125e-07, true},
		{1e6, -1e-3, true},
		{1e6, -0.1, false},
		{1e9, -1, false}, // of an exporter that does not know
		{1e15, -1, false},
		{0.7, -1e-15, true},
		{0.7, -1e-6, false},
		{1e-9, -1e-10, false},
	} {
		p := params(func(p *pipeline.Params) { p.Threshold = test.threshold })
		v, err := LimitsOf(p, false).Check(test.v)
		assert.Zero(t, v)
		if test.zero {
			assert.NoError(t, err, "%g of %g", test.v, test.threshold)
		} else {
			assert.ErrorContains(t, err, "must be 0 or more", "%g of %g", test.v, test.threshold)
		}
	}
}

func TestUnit(t *testing.T) {
	x := readings("a", 3, math.NaN(), math.Inf(1), -9, 7, math.Inf(-1), 5)
	assert.Equal(t, 7.0, Unit(1, x.Samples))
	assert.Equal(t, 8.0, Unit(8, x.Samples))
	assert.Equal(t, 1.0, Unit(1, nil))
}
