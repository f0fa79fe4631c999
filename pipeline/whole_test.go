package pipeline_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// wholeParams measures the load as a whole: 50 a pod, from and to zero.
func wholeParams(method pipeline.Method) pipeline.Params {
	p := pipeline.AdaptiveParams()
	if method == pipeline.Holt {
		p = pipeline.HoltParams()
	}
	p.Whole, p.Threshold, p.Min, p.Max = true, 50, 0, 100
	return p
}

// until returns samples a second apart, the newest at now, each f of how many seconds ago it was.
func until(now int64, n int, f func(ago int) float64) []pipeline.Sample {
	var s []pipeline.Sample
	for ago := n; ago >= 0; ago-- {
		s = append(s, pipeline.Sample{T: now - int64(ago)*1000, V: f(ago)})
	}
	return s
}

// A load that is measured as a whole is forecast as that of one instance which carries all of it, and needs as many.
func TestWholeIsTheSumOfItsInstances(t *testing.T) {
	const now = 600_000
	for _, method := range []pipeline.Method{pipeline.Adaptive, pipeline.Holt} {
		for seed := range uint64(50) {
			random := rand.New(rand.NewPCG(seed, 0))
			slope, noise := random.Float64()*4-2, random.Float64()*20
			load := until(now, 400, func(ago int) float64 { return max(0, 1000-slope*float64(ago)+noise*random.NormFloat64()) })
			p := wholeParams(method)
			p.Min = 1
			whole := run(t, p, pipeline.Input{Now: now, Total: load, Target: 20})
			p.Whole = false
			summed := run(t, p, pipeline.Input{Now: now,
				Instances: []pipeline.Instance{{ID: "a", Start: 1, Samples: load}}, Target: 20})
			for name, pair := range map[string][2]float64{
				"level": {summed.Level, whole.Level}, "trend": {summed.Trend, whole.Trend}, "total": {summed.Total, whole.Total},
				"required": {summed.Required, whole.Required}, "served": {summed.ServedLoad, whole.ServedLoad},
				"predicted": {summed.LoadPredicted, whole.LoadPredicted},
			} {
				require.Equal(t, pair[0], pair[1], "%s with %s, seed %d", name, method, seed)
			}
		}
	}
}

func TestWholeCountsInstancesWithoutSamples(t *testing.T) {
	const now = 600_000
	load := until(now, 100, func(int) float64 { return 120 })
	instances := []pipeline.Instance{{ID: "a", Start: 1}, {ID: "b", Start: 1}, {ID: "gone", Start: 1, End: now - 50_000}}
	f := run(t, wholeParams(pipeline.Adaptive), pipeline.Input{Now: now, Total: load, Instances: instances, Target: 3})
	assert.Equal(t, 2, f.Active)
	assert.Equal(t, 3, f.Target)
	assert.InDelta(t, 60, f.LoadNow, 1e-9, "shared by the two that are there")
	assert.InDelta(t, 40, f.LoadPredicted, 1e-9, "shared by the three that are requested")

	f = run(t, wholeParams(pipeline.Adaptive), pipeline.Input{Now: now, Total: load, Instances: instances})
	assert.Equal(t, 2, f.Target, "the active ones, while the target is not known")
}

func TestFromAndToZero(t *testing.T) {
	const now = 600_000
	flat := func(v float64) func(int) float64 { return func(int) float64 { return v } }
	rising := func(ago int) float64 { return max(0, 2*(10-float64(ago))) } // began 10 s ago, 2 a second
	for name, c := range map[string]struct {
		load       func(int) float64
		activation float64
		target     int
		pending    bool
		desired    int
		reason     pipeline.Reason
		served     bool // anything
	}{
		"nothing at all":           {load: flat(0), desired: 0, reason: pipeline.Idle},
		"nothing any more":         {load: flat(0), target: 3, desired: 0, reason: pipeline.Idle},
		"a little wakes":           {load: flat(1), desired: 1, reason: pipeline.Activated, served: true},
		"a little keeps one":       {load: flat(1), target: 1, desired: 1, reason: pipeline.NoNeed, served: true},
		"a little of many":         {load: flat(1), target: 5, desired: 1, reason: pipeline.Headroom, served: true},
		"much wakes as many":       {load: flat(230), desired: 5, reason: pipeline.Activated, served: true},
		"not above the activation": {load: flat(9), activation: 10, desired: 0, reason: pipeline.Idle},
		"an item in a long queue":  {load: flat(0.01), desired: 1, reason: pipeline.Activated, served: true},
		"the last item":            {load: flat(0.01), target: 1, desired: 1, reason: pipeline.NoNeed, served: true},
		"falling far below zero": {load: func(ago int) float64 { return 40 + 30*float64(ago) }, target: 20, desired: 2,
			reason: pipeline.Headroom, served: true},
		"below it again":              {load: flat(9), activation: 10, target: 2, desired: 0, reason: pipeline.Idle},
		"above the activation":        {load: flat(11), activation: 10, desired: 1, reason: pipeline.Activated, served: true},
		"predicted above it":          {load: rising, activation: 30, desired: 1, reason: pipeline.Activated, served: true},
		"idle while one still starts": {load: flat(0), target: 1, pending: true, desired: 1, reason: pipeline.ScaleUpPending},
	} {
		t.Run(name, func(t *testing.T) {
			p := wholeParams(pipeline.Adaptive)
			p.Activation = c.activation
			in := pipeline.Input{Now: now, Total: until(now, 100, c.load), Target: c.target, TargetRose: pipeline.Never}
			for i := range c.target {
				in.Instances = append(in.Instances, pipeline.Instance{ID: string(rune('a' + i)), Start: 1})
			}
			if c.pending {
				in.Instances, in.TargetRose = nil, now-1000
			}
			f := run(t, p, in)
			assert.Equal(t, c.desired, f.Decision.Desired)
			assert.Equal(t, c.reason, f.Decision.Reason)
			assert.Equal(t, c.served, f.ServedLoad > 0, "served: %v", f.ServedLoad)

			p.Method = pipeline.Holt
			f = run(t, p, in)
			assert.Equal(t, c.served, f.ServedLoad > 0, "served with Holt: %v", f.ServedLoad)
			assert.Equal(t, c.desired > 0, f.Decision.Desired > 0, "desired with Holt: %d", f.Decision.Desired)
		})
	}
}

func TestWholeParamsAreChecked(t *testing.T) {
	for field, change := range map[string]func(*pipeline.Params){
		"minReplicas": func(p *pipeline.Params) { p.Min = -1 },
		"activation":  func(p *pipeline.Params) { p.Activation = -1 },
		"model":       func(p *pipeline.Params) { p.Model.Kind = pipeline.Quadratic },
		"saturation":  func(p *pipeline.Params) { p.Saturation = pipeline.Saturation{Enabled: true, Max: 100} },
	} {
		p := wholeParams(pipeline.Adaptive)
		require.NoError(t, p.Validate())
		change(&p)
		assert.ErrorContains(t, p.Validate(), field+": ")
	}
	p := wholeParams(pipeline.Adaptive)
	p.Min, p.Activation = 1, 5
	assert.ErrorContains(t, p.Validate(), "activation: 5: must be absent unless minReplicas is 0 (it is 1)")
	p.Whole, p.Min, p.Activation = false, 0, 5
	assert.ErrorContains(t, p.Validate(),
		"minReplicas: 0: must be at least 1, or 0 if the source measures the whole target")
	assert.ErrorContains(t, p.Validate(), "activation: 5: must be absent unless the source")

	made, err := pipeline.New(wholeParams(pipeline.Adaptive))
	require.NoError(t, err)
	_, err = made.Run(pipeline.Input{Now: 600_000,
		Instances: []pipeline.Instance{{ID: "a", Start: 1, Samples: until(600_000, 9, func(int) float64 { return 1 })}}})
	require.ErrorIs(t, err, pipeline.ErrNoData, "samples of instances are none of the whole")
	_, err = made.Run(pipeline.Input{Now: 600_000, Total: until(500_000, 90, func(int) float64 { return 1 })})
	var stale *pipeline.StaleError
	require.ErrorAs(t, err, &stale)
	assert.Equal(t, 100*time.Second, stale.Age)
}
