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
		name string
		p    *pipeline.Params
		v    float64
		want string // what the error has; "": the reading is possible
	}{
		{"zero", plain, 0, ""},
		{"far above the threshold", plain, 1e6, ""},
		{"NaN", plain, math.NaN(), "a reading is NaN: must be a finite number"},
		{"infinite", plain, math.Inf(1), "a reading is +Inf"},
		{"infinite below", plain, math.Inf(-1), "a reading is -Inf"},
		{"negative", plain, -1, "a reading is -1: must be 0 or more, as a negative load is taken for unknown"},
		{"hardly negative", plain, -1e-6, "a reading is -1e-06"},
		{"more than replicas can be counted", plain, 50 * 1e10, "a reading is 5e+11: must be at most 1.07374e+11, as no number of replicas carries more"},
		{"the largest number", plain, math.MaxFloat64, "no number of replicas carries more"},
		{"at the maximum", saturated, 100, ""},
		{"a rate that was read late", saturated, 124, ""},
		{"above the maximum", saturated, 126, "a reading is 126: must be at most saturation.max (100); raise that, or leave it out, if the metric can be higher"},
		{"negative of a square", quadratic, -3, "must be 0 or more"},
		{"a square", quadratic, 50 * 1000, ""},
		{"a square that is too large", quadratic, 50 * 1e5, "no number of replicas carries more"},
		{"below the baseline", overhead, 1, ""},
		{"a sum of it is not finite in float32", large, 2e30, "must be at most 1e+30"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := LimitsOf(test.p).Check(test.v)
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
	v, err := LimitsOf(params(func(*pipeline.Params) {})).Check(-1e-12)
	require.NoError(t, err)
	assert.Zero(t, v)
}
