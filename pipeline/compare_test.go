package pipeline_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// agree reports whether two numbers are equal to a relative error of 1e-9, apart from rounding errors of the sums that
// they were computed from, whose size is scale.
func agree(a, b, scale float64) bool {
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b))+1e-12*scale
}

// TestNaiveAgrees compares every number of every stage with the naive implementation's, under random fleets.
func TestNaiveAgrees(t *testing.T) {
	const runs = 4000
	seen := map[string]int{}
	for seed := range uint64(runs) {
		r := newFleets(seed)
		params := r.params()
		in := r.input(params)
		p, err := pipeline.New(params)
		require.NoError(t, err, "seed %d", seed)
		got, gotErr := p.Run(in)
		want, wantErr := naiveRun(params, in)
		switch {
		case errors.Is(wantErr, naiveNoData):
			require.ErrorIs(t, gotErr, pipeline.ErrNoData, "seed %d", seed)
			seen["no data"]++
		case errors.Is(wantErr, naiveStale):
			var stale *pipeline.StaleError
			require.ErrorAs(t, gotErr, &stale, "seed %d", seed)
			seen["stale"]++
		default:
			require.NoError(t, wantErr, "seed %d", seed)
			require.NoError(t, gotErr, "seed %d", seed)
			if !compareStages(t, seed, stagesOf(t, p, in, got), want, params.Interval.Milliseconds()) {
				seen["tie"]++
				break
			}
			compareForecast(t, seed, params.Model, params.Threshold, got, want)
			seen[string(got.Decision.Direction)]++
			seen[string(got.Decision.Action)]++
			seen[string(got.Decision.Reason)]++
			for _, tick := range want.at {
				switch {
				case tick.absorbed != tick.weighted:
					seen["absorbed"]++
				case tick.delta != 0:
					seen["delta"]++
				}
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Log(seen)
	for _, kind := range []string{
		"no data", "stale", "Rising", "Falling", "Steady", "ScaleUp", "ScaleDown", "Hold", "absorbed", "delta",
		"TrendRising", "AboveThreshold",
		"Headroom", "BelowMinimum", "AtMaximum", "NoNeed", "ScaleUpPending", "StillOverloaded",
	} {
		require.Greater(t, seen[kind], 10, "the fleets hardly ever come to %q", kind)
	}
}

// peak is the largest sum of the window.
func (r *naiveResult) peak() float64 {
	peak := 0.0
	for _, tick := range r.at {
		peak = max(peak, math.Abs(tick.sum)+math.Abs(tick.raw)+math.Abs(tick.demand))
	}
	return peak
}

// compareStages compares tick by tick, up to the first that a rounding error decides; without one it returns true.
func compareStages(t *testing.T, seed uint64, got stageValues, want *naiveResult, step int64) (whole bool) {
	require.Equal(t, want.ticks[0], got.First, "seed %d: first tick", seed)
	require.Len(t, got.Effective, len(want.ticks), "seed %d: ticks", seed)
	scale := want.peak()
	for k, at := range want.ticks {
		require.Equal(t, got.First+int64(k)*step, at, "seed %d", seed)
		tick := want.at[at]
		if tick.tie(scale) {
			return false
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"raw", got.Raw[k], tick.raw},
			{"effective", got.Effective[k], tick.absorbed + tick.demand},
			{"delta", got.Delta[k], tick.delta},
			{"missed", got.Missed[k], tick.missed},
		} {
			if !agree(c.got, c.want, scale) {
				t.Errorf("seed %d, tick %d of %d: %s is %v, naively %v", seed, k, len(want.ticks), c.name, c.got, c.want)
			}
		}
		if got.Active[k] != len(tick.imputed) {
			t.Errorf("seed %d, tick %d: %d active, naively %d", seed, k, got.Active[k], len(tick.imputed))
		}
	}
	return true
}

func compareForecast(t *testing.T, seed uint64, model pipeline.Model, threshold float64,
	got pipeline.Forecast, want *naiveResult) {
	if got.Tick != want.last || got.Active != want.active || got.Target != want.target || got.Dropped != want.dropped {
		t.Errorf("seed %d: tick, active, target, dropped are %d %d %d %d, naively %d %d %d %d", seed,
			got.Tick, got.Active, got.Target, got.Dropped, want.last, want.active, want.target, want.dropped)
	}
	if d := got.Decision; d.Direction != want.direction || d.Desired != want.desired || d.Action != want.action {
		t.Errorf("seed %d: decision is %+v, naively %s %d %s", seed, d, want.direction, want.desired, want.action)
	}
	if d := got.Horizon - want.horizon; d < -time.Microsecond || d > time.Microsecond {
		t.Errorf("seed %d: horizon is %s, naively %s", seed, got.Horizon, want.horizon)
	}
	peak, present := want.peak(), want.weight
	if present == 0 {
		present = float64(want.active)
	}
	for _, c := range []struct {
		name             string
		got, want, scale float64
	}{
		{"level", got.Level, want.level, peak},
		{"trend", got.Trend, want.trend, peak},
		{"total", got.Total, want.total, peak},
		{"damped", got.PlannedLoad, want.damped, peak},
		{"weight", got.Weight, want.weight, 0},
		{"load now, to the model", naiveLoad(model, got.LoadNow), naiveLoad(model, want.now), peak / present},
		{"load predicted, to the model", naiveLoad(model, got.LoadPredicted), naiveLoad(model, want.ahead), peak},
		{"required", got.Required, want.required, peak / naiveLoad(model, threshold)},
		{"serve", got.ServedLoad, want.serve, peak},
	} {
		if !agree(c.got, c.want, c.scale) {
			t.Errorf("seed %d: %s is %v, naively %v", seed, c.name, c.got, c.want)
		}
	}
}
