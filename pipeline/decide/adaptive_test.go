package decide_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// tau is the threshold of the examples in the paper's section 8.4.
const tau = 0.75

// options are those of the adaptive method by default, for up to 20 instances.
func options() decide.Options {
	return decide.Options{
		Adaptive: true, Threshold: tau, Min: 1, Max: 20,
		TrendLimit: trendLimit(10), RiskFactor: 2, ScaleDownMargin: 0.05, Spillover: 0.1, NoiseMargin: 0.8, Lateness: 0.01,
	}
}

// trendLimit returns γ_0 of an angle in degrees.
func trendLimit(angle float64) float64 { return math.Tan(angle * math.Pi / 180) }

// needing is a load of so many instances at a target; err is that of the level in instances.
func needing(required, err float64, target int) decide.Input {
	return decide.Input{Level: required * tau, TrendTotal: required * tau, Error: err * tau, Instances: 1, Target: target}
}

// decided returns the decision for a prospect, and the load that an average over instances scales on.
func decided(o decide.Options, p decide.Input, pending bool) (d decide.Decision, serve float64) {
	l := decide.Assess(&o, p)
	return decide.Decide(&o, &l, pending), l.ServedLoad
}

// With a spillover of 0.1 and a margin of 0.05, a need of N is met by ⌈N − 0.1⌉ to ⌈1.05·N + 0.1⌉ instances.
func TestAdaptiveDecision(t *testing.T) {
	type params = decide.Options
	for name, c := range map[string]struct {
		set     func(*params)
		f       decide.Input
		pending bool
		want    int
		reason  decide.Reason
	}{
		"too few":                       {f: needing(7, 0, 5), want: 7, reason: decide.AboveThreshold},
		"too few, with some on the way": {f: needing(7, 0, 5), pending: true, want: 7, reason: decide.AboveThreshold},
		"just enough":                   {f: needing(7, 0, 7), want: 7, reason: decide.NoNeed},
		"one more":                      {f: needing(7, 0, 8), want: 8, reason: decide.NoNeed},
		"two more":                      {f: needing(7, 0, 9), want: 8, reason: decide.Headroom},
		"far more":                      {f: needing(7, 0, 20), want: 8, reason: decide.Headroom},
		"more, with some on the way":    {f: needing(7, 0, 20), pending: true, want: 20, reason: decide.ScaleUpPending},
		"a sliver":                      {f: needing(7.09, 0, 7), want: 7, reason: decide.NoNeed},
		"more than a sliver":            {f: needing(7.11, 0, 7), want: 8, reason: decide.AboveThreshold},
		"a sliver, to rounding":         {f: needing(7.1+1e-12, 0, 7), want: 7, reason: decide.NoNeed},
		"a sliver, trimming off": {set: func(p *params) { p.Spillover = 0 }, f: needing(7.01, 0, 7), want: 8,
			reason: decide.AboveThreshold},
		"no slack": {set: func(p *params) { p.Spillover, p.ScaleDownMargin = 0, 0 },
			f: needing(7, 0, 8), want: 7, reason: decide.Headroom},
		"unknown by half an instance":    {f: needing(7.5, 0.25, 7), want: 7, reason: decide.NoNeed},
		"unknown by less than is missed": {f: needing(7.7, 0.25, 7), want: 8, reason: decide.AboveThreshold},
		"unknown, too many":              {f: needing(7, 1.5, 20), want: 11, reason: decide.Headroom}, // ⌈7.35 + 0.1 + 3⌉
		"no more than the maximum":       {f: needing(25, 0, 10), want: 20, reason: decide.AtMaximum},
		"exactly the maximum":            {f: needing(20, 0, 10), want: 20, reason: decide.AboveThreshold},
		"at the maximum":                 {f: needing(25, 0, 20), want: 20, reason: decide.AtMaximum},
		"above the maximum already":      {f: needing(30, 0, 25), want: 25, reason: decide.AtMaximum},
		"no more than a step": {set: func(p *params) { p.MaxStep = 4 }, f: needing(17, 0, 10), want: 14,
			reason: decide.AboveThreshold},
		"a step down is not held": {set: func(p *params) { p.MaxStep = 4 }, f: needing(2, 0, 10),
			want: 3, reason: decide.Headroom},
		"nothing to do":           {f: needing(0, 0, 9), want: 1, reason: decide.Headroom},
		"less than nothing to do": {f: needing(-3, 0, 9), want: 1, reason: decide.Headroom},
		"the minimum": {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 9),
			want: 3, reason: decide.Headroom},
		"at the minimum": {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 3),
			want: 3, reason: decide.Headroom},
		"below the minimum": {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 2), want: 3,
			reason: decide.BelowMinimum},
		"below it, and enough": {set: func(p *params) { p.Min = 3 }, f: needing(2, 0, 2), want: 3,
			reason: decide.BelowMinimum},
		"below it, and too few": {set: func(p *params) { p.Min = 3 }, f: needing(5, 0, 2), want: 5,
			reason: decide.AboveThreshold},
		"below it, and too few for less": {set: func(p *params) { p.Min = 3 }, f: needing(2, 0, 1), want: 3,
			reason: decide.AboveThreshold},
		"below it, and some on the way": {set: func(p *params) { p.Min = 3 }, f: needing(1, 0, 2), pending: true, want: 3,
			reason: decide.BelowMinimum},
		"more than can be counted": {f: needing(1e300, 0, 2), want: 20, reason: decide.AtMaximum},
	} {
		t.Run(name, func(t *testing.T) {
			p := options()
			if c.set != nil {
				c.set(&p)
			}
			action := decide.Hold
			switch {
			case c.want > c.f.Target:
				action = decide.ScaleUp
			case c.want < c.f.Target:
				action = decide.ScaleDown
			}
			d, _ := decided(p, c.f, c.pending)
			require.Equal(t, decide.Decision{Direction: decide.Steady, Desired: c.want, Action: action, Reason: c.reason}, d)
		})
	}
}

// For an acceptable target the served load is the load that keeps it; for any other target it is the need.
func TestServedLoadKeepsAnAcceptableCount(t *testing.T) {
	p := options()
	p.Max = 1000
	for required := 0.05; required < 30; required += 0.0703 {
		least, most := int(math.Ceil(required-0.1)), int(math.Ceil(1.05*required+0.1))
		for target := 1; target < 40; target++ {
			what := fmt.Sprintf("%d for %v", target, required)
			d, serve := decided(p, needing(required, 0, target), false)
			if least <= target && target <= most {
				assert.Equal(t, decide.Hold, d.Action, what)
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
	_, serve := decided(p, needing(1.95, 0, 2), false)
	assert.InDelta(t, tau*1.95, serve, 1e-12, "below the minimum the need is served")
}

// randomOptions returns random valid options without a limit of steps.
func randomOptions(r seriestest.Random) decide.Options {
	o := options()
	o.Threshold = seriestest.Pick(r, 0.7, 0.75, 1, r.Between(0.1, 200))
	o.Model = seriestest.Pick(r, series.Model{}, series.Model{Kind: series.Linear}, series.Model{Kind: series.Quadratic},
		series.Model{Kind: series.Overhead, Baseline: o.Threshold * r.Between(0, 0.2)})
	o.Min = 1 + r.IntN(4)
	o.Max = o.Min + r.IntN(25)
	o.TrendLimit, o.ScaleDownMargin, o.Spillover = trendLimit(r.Between(0, 30)), r.Between(0, 1.5), r.Between(0, 0.99)
	return o
}

// A decided count is good enough: deciding again keeps it.
func TestAdaptiveDecisionIsStable(t *testing.T) {
	held := 0
	for seed := range uint64(3000) {
		r := seriestest.NewRandom(seed)
		p := randomOptions(r)
		f := decide.Input{Level: r.Between(0, 20) * p.Threshold, Error: r.Between(0, 1) * p.Threshold, Instances: 1}
		f.Target = p.Min + r.IntN(p.Max-p.Min+1)
		f.TrendTotal = f.Level * r.Between(1, 1.5)
		first, _ := decided(p, f, false)
		require.LessOrEqual(t, first.Desired, p.Max)
		require.GreaterOrEqual(t, first.Desired, p.Min)
		if first.Action == decide.Hold {
			held++
		}
		f.Target = first.Desired
		again, _ := decided(p, f, false)
		require.Equal(t, first.Desired, again.Desired, "seed %d", seed)
		require.Equal(t, decide.Hold, again.Action)
	}
	require.Greater(t, held, 300)
	require.Less(t, held, 2700)
}
