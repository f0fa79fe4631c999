package whatif

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/pipeline"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hour is a load between 1 and 9 pods' worth at a threshold of one unit, with ten replicas for it.
func hour(unit float64) []Point {
	points := make([]Point, 720)
	for i := range points {
		points[i] = Point{At: began.Add(time.Duration(i) * step),
			Load: unit * (5 - 4*math.Cos(2*math.Pi*float64(i)/240)), Ready: 10, Replicas: 10}
	}
	return points
}

func recommended(threshold float64) pipeline.Params {
	p := scaler.RecommendedParams()
	p.Threshold, p.Max = threshold, 20
	return p
}

func play(t *testing.T, p pipeline.Params, points []Point) *Result {
	t.Helper()
	r, err := Play(t.Context(), p, points)
	require.NoError(t, err)
	return r
}

func TestPlay(t *testing.T) {
	p := recommended(0.7)
	r := play(t, p, hour(0.7))
	assert.Equal(t, began, r.From)
	assert.False(t, r.Gaps)
	require.Len(t, r.Runs, 4)
	span := r.To.Sub(r.From)
	for i, name := range []string{"recorded", "foresail-total", "keda", "clairvoyant"} {
		assert.Equal(t, name, r.Runs[i].Name)
		assert.InDelta(t, int(span/step), len(r.Runs[i].Replicas), 1, name)
		assert.LessOrEqual(t, r.Runs[i].AboveMinutes, span.Minutes(), name)
		assert.Greater(t, r.Runs[i].PodHours, 5*span.Hours()*0.9, "%s: 5 pods are needed on average", name)
	}
	recorded, foresail, keda, bound := r.Runs[0], r.Runs[1], r.Runs[2], r.Runs[3]
	assert.InDelta(t, 10*span.Hours(), recorded.PodHours, 1e-6)
	assert.Zero(t, recorded.AboveMinutes)
	assert.Zero(t, bound.AboveMinutes, "nobody is late who knows the load")
	assert.Less(t, foresail.AboveMinutes, keda.AboveMinutes)
	assert.Less(t, foresail.PodHours, recorded.PodHours)
	assert.NotEmpty(t, r.Assumed)
}

// A load in other units is the same load, unless the metric saturates.
func TestUnitsDoNotMatter(t *testing.T) {
	small, large := recommended(0.5), recommended(500)
	small.Saturation, large.Saturation = pipeline.Saturation{}, pipeline.Saturation{}
	assert.Equal(t, play(t, small, hour(0.5)).Runs, play(t, large, hour(500)).Runs)
	saturating := recommended(0.5)
	saturating.Saturation.Max = 0.6
	assert.NotEqual(t, play(t, small, hour(0.5)).Runs[2], play(t, saturating, hour(0.5)).Runs[2])
}

func TestParametersMatter(t *testing.T) {
	base := play(t, recommended(0.7), hour(0.7)).Runs[1]
	for name, c := range map[string]func(*pipeline.Params){
		"a lower threshold": func(p *pipeline.Params) { p.Threshold = 0.35 },
		"a higher minimum":  func(p *pipeline.Params) { p.Min = 9 },
	} {
		p := recommended(0.7)
		c(&p)
		assert.Greater(t, play(t, p, hour(0.7)).Runs[1].PodHours, base.PodHours*1.1, name)
	}
	p := recommended(0.7)
	p.Max = 4
	capped := play(t, p, hour(0.7)).Runs
	assert.Greater(t, capped[1].AboveMinutes, 20.0)
	for _, n := range capped[1].Replicas {
		require.LessOrEqual(t, n, 4)
	}
	p = recommended(0.7)
	p.StartupTime = 4 * time.Minute
	slow := play(t, p, hour(0.7)).Runs
	assert.Greater(t, slow[2].AboveMinutes, play(t, recommended(0.7), hour(0.7)).Runs[2].AboveMinutes,
		"keda is later, the longer pods take")
}

func TestTheLongestPartWithoutAGapIsPlayed(t *testing.T) {
	points := hour(0.7)
	points[100].Load = math.NaN()
	r := play(t, recommended(0.7), points)
	assert.Equal(t, points[101].At, r.From)
	assert.True(t, r.Gaps)

	for i := 250; i < len(points); i++ {
		points[i].At = points[i].At.Add(time.Minute)
	}
	r = play(t, recommended(0.7), points)
	assert.Equal(t, points[250].At, r.From)

	scarce := points[101:219]
	_, err := Play(t.Context(), recommended(0.7), scarce)
	require.ErrorContains(t, err, "less than 10 minutes of the load are recorded without a gap")
	_, err = Play(t.Context(), recommended(0.7), nil)
	require.ErrorContains(t, err, "less than 10 minutes")
}

func TestWhatIsNotPlayed(t *testing.T) {
	for want, c := range map[string]func(*pipeline.Params, []Point){
		`spec.model: "Quadratic": must be Linear`: func(p *pipeline.Params,
			_ []Point) {
			p.Model.Kind = pipeline.Quadratic
		},
		"spec.startupTime: 31m0s: must be at most 30m0s to be played": func(p *pipeline.Params,
			_ []Point) {
			p.StartupTime = 31 * time.Minute
		},
		"900 replicas would be needed: at most 500 can be played": func(p *pipeline.Params,
			_ []Point) {
			p.Threshold, p.Max = 0.007, 1000
		},
		"600 replicas would be needed": func(p *pipeline.Params,
			_ []Point) {
			p.Min, p.Max = 600, 1000
		},
		"the load was 0 all the time": func(_ *pipeline.Params, points []Point) {
			for i := range points {
				points[i].Load = 0
			}
		},
	} {
		p, points := recommended(0.7), hour(0.7)
		c(&p, points)
		_, err := Play(t.Context(), p, points)
		assert.ErrorContains(t, err, want)
	}
}

func TestPlayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Play(ctx, recommended(0.7), hour(0.7))
	require.ErrorIs(t, err, context.Canceled)
}
