package pipeline_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// needing is a forecast of so many instances at a target; error is that of the level in instances.
func needing(required, err float64, target int) pipeline.Forecast {
	return pipeline.Forecast{Level: required * tau, Error: err * tau, Required: required, Target: target}
}

// With a spillover of 0.1 and a margin of 0.05, a need of N is met by ⌈N − 0.1⌉ to ⌈1.05·N + 0.1⌉ instances.
func TestAdaptiveDecision(t *testing.T) {
	type params = pipeline.Params
	for name, c := range map[string]struct {
		set     func(*params)
		f       pipeline.Forecast
		pending bool
		want    int
		reason  pipeline.Reason
	}{
		"too few":                        {f: needing(7, 0, 5), want: 7, reason: pipeline.AboveThreshold},
		"too few, with some on the way":  {f: needing(7, 0, 5), pending: true, want: 7, reason: pipeline.AboveThreshold},
		"just enough":                    {f: needing(7, 0, 7), want: 7, reason: pipeline.NoNeed},
		"one more":                       {f: needing(7, 0, 8), want: 8, reason: pipeline.NoNeed},
		"two more":                       {f: needing(7, 0, 9), want: 8, reason: pipeline.Headroom},
		"far more":                       {f: needing(7, 0, 20), want: 8, reason: pipeline.Headroom},
		"more, with some on the way":     {f: needing(7, 0, 20), pending: true, want: 20, reason: pipeline.ScaleUpPending},
		"a sliver":                       {f: needing(7.09, 0, 7), want: 7, reason: pipeline.NoNeed},
		"more than a sliver":             {f: needing(7.11, 0, 7), want: 8, reason: pipeline.AboveThreshold},
		"a sliver, to rounding":          {f: needing(7.1+1e-12, 0, 7), want: 7, reason: pipeline.NoNeed},
		"a sliver, trimming off":         {set: func(p *params) { p.Spillover = 0 }, f: needing(7.01, 0, 7), want: 8, reason: pipeline.AboveThreshold},
		"no slack":                       {set: func(p *params) { p.Spillover, p.ScaleDownMargin = 0, 0 }, f: needing(7, 0, 8), want: 7, reason: pipeline.Headroom},
		"unknown by half an instance":    {f: needing(7.5, 0.25, 7), want: 7, reason: pipeline.NoNeed},
		"unknown by less than is missed": {f: needing(7.7, 0.25, 7), want: 8, reason: pipeline.AboveThreshold},
		"unknown, too many":              {f: needing(7, 1.5, 20), want: 11, reason: pipeline.Headroom}, // ⌈7.35 + 0.1 + 3⌉
		"no more than the maximum":       {f: needing(25, 0, 10), want: 20, reason: pipeline.AtMaximum},
		"exactly the maximum":            {f: needing(20, 0, 10), want: 20, reason: pipeline.AboveThreshold},
		"at the maximum":                 {f: needing(25, 0, 20), want: 20, reason: pipeline.AtMaximum},
		"above the maximum already":      {f: needing(30, 0, 25), want: 25, reason: pipeline.AtMaximum},
		"no more than a step":            {set: func(p *params) { p.MaxStep = 4 }, f: needing(17, 0, 10), want: 14, reason: pipeline.AboveThreshold},
		"a step down is not held":        {set: func(p *params) { p.MaxStep = 4 }, f: needing(2, 0, 10), want: 3, reason: pipeline.Headroom},
		"nothing to do":                  {f: needing(0, 0, 9), want: 1, reason: pipeline.Headroom},
		"less than nothing to do":        {f: needing(-3, 0, 9), want: 1, reason: pipeline.Headroom},
		"the minimum":                    {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 9), want: 3, reason: pipeline.Headroom},
		"at the minimum":                 {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 3), want: 3, reason: pipeline.Headroom},
		"below the minimum":              {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 2), want: 3, reason: pipeline.BelowMinimum},
		"below it, and enough":           {set: func(p *params) { p.Min = 3 }, f: needing(2, 0, 2), want: 3, reason: pipeline.BelowMinimum},
		"below it, and too few":          {set: func(p *params) { p.Min = 3 }, f: needing(5, 0, 2), want: 5, reason: pipeline.AboveThreshold},
		"below it, and too few for less": {set: func(p *params) { p.Min = 3 }, f: needing(2, 0, 1), want: 3, reason: pipeline.AboveThreshold},
		"below it, and some on the way":  {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 2), pending: true, want: 3, reason: pipeline.BelowMinimum},
		"more than can be counted":       {f: needing(1e300, 0, 2), want: 20, reason: pipeline.AtMaximum},
	} {
		t.Run(name, func(t *testing.T) {
			p := adaptive()
			if c.set != nil {
				c.set(&p)
			}
			action := pipeline.Hold
			switch {
			case c.want > c.f.Target:
				action = pipeline.ScaleUp
			case c.want < c.f.Target:
				action = pipeline.ScaleDown
			}
			d, _ := pipeline.DecideAdaptive(p, c.f, c.pending)
			require.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: c.want, Action: action, Reason: c.reason}, d)
		})
	}
}

// A target that is good enough is what an average with target τ is told to stay at; any other is told the need.
func TestServeKeepsACountThatIsGoodEnough(t *testing.T) {
	p := adaptive()
	p.Max = 1000
	for required := 0.05; required < 30; required += 0.0703 {
		least, most := int(math.Ceil(required-0.1)), int(math.Ceil(1.05*required+0.1))
		for target := 1; target < 40; target++ {
			what := fmt.Sprintf("%d for %v", target, required)
			d, serve := pipeline.DecideAdaptive(p, needing(required, 0, target), false)
			if least <= target && target <= most {
				assert.Equal(t, pipeline.Hold, d.Action, what)
				assert.Equal(t, tau*float64(target), serve, what)
				continue
			}
			assert.InDelta(t, tau*required, serve, 1e-12, what)
			if target < least {
				assert.Equal(t, least, d.Desired, what)
			} else {
				assert.Equal(t, most, d.Desired, what)
			}
		}
	}
	p.Min = 3
	_, serve := pipeline.DecideAdaptive(p, needing(1.95, 0, 2), false)
	assert.InDelta(t, tau*1.95, serve, 1e-12, "below the minimum the need is told")
}

// A decided count is good enough: deciding again keeps it.
func TestAdaptiveDecisionIsStable(t *testing.T) {
	held := 0
	for seed := range uint64(3000) {
		r := newFleets(seed)
		p := r.params()
		p.Method, p.MaxStep = pipeline.Adaptive, 0
		f := pipeline.Forecast{Level: r.Between(0, 20) * p.Threshold, Error: r.Between(0, 1) * p.Threshold, Target: p.Min + r.IntN(p.Max-p.Min+1)}
		f.Required = p.Model.Required(f.Level*r.Between(1, 1.5), p.Threshold)
		first, _ := pipeline.DecideAdaptive(p, f, false)
		require.LessOrEqual(t, first.Desired, p.Max)
		require.GreaterOrEqual(t, first.Desired, p.Min)
		if first.Action == pipeline.Hold {
			held++
		}
		f.Target = first.Desired
		again, _ := pipeline.DecideAdaptive(p, f, false)
		require.Equal(t, first.Desired, again.Desired, "seed %d", seed)
		require.Equal(t, pipeline.Hold, again.Action)
	}
	require.Greater(t, held, 300)
	require.Less(t, held, 2700)
}
