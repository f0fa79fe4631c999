package pipeline_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// methods are all there are.
var methods = []pipeline.Method{pipeline.Holt, pipeline.Adaptive}

type check func(r fleets, params pipeline.Params, in pipeline.Input, want pipeline.Forecast)

// forFleets calls check with random parameters and inputs that make a forecast, by each method.
func forFleets(t *testing.T, n int, check check) {
	t.Helper()
	for _, method := range methods {
		forFleetsBy(t, method, n, check)
	}
}

// forFleetsBy is forFleets of one method.
func forFleetsBy(t *testing.T, method pipeline.Method, n int, check check) {
	t.Helper()
	forecasts := 0
	for seed := range uint64(n) {
		r := newFleets(1_000_000 + seed)
		params := r.params()
		params.Method = method
		in := r.input(params)
		p, err := pipeline.New(params)
		require.NoError(t, err)
		f, err := p.Run(in)
		if err != nil {
			continue
		}
		forecasts++
		check(r, params, in, f)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", 1_000_000+seed, params)
		}
	}
	require.Greater(t, forecasts, n/2)
}

// Paper, section 6.5: Ā falls only where the raw sum falls below what it was, and then to the raw sum.
func TestAggregateFallsOnlyWithTheRawSum(t *testing.T) {
	held, fell := 0, 0
	forFleetsBy(t, pipeline.Holt, 1500, func(_ fleets, params pipeline.Params, in pipeline.Input, _ pipeline.Forecast) {
		in.Demand = nil
		_, s := stages(t, params, in)
		for k := 1; k < len(s.Effective); k++ {
			now, before := s.Effective[k], s.Effective[k-1]
			require.LessOrEqual(t, s.Weight[k], float64(s.Active[k]))
			switch {
			case now < before:
				fell++
				require.Less(t, s.Raw[k], before, "tick %d", k)
				require.Equal(t, s.Raw[k], now, "tick %d", k)
			case now == before:
				held++
			}
		}
	})
	require.Greater(t, held, 1000)
	require.Greater(t, fell, 1000)
}

// scalingAlone returns a fleet that shares a constant load of 4 while instances come and go. Each newcomer takes over
// its share gradually, at a pace of its own; what an instance that leaves carried is with the others at once.
func (r fleets) scalingAlone(now int64) pipeline.Input {
	type member struct {
		pipeline.Instance
		pace float64 // ms until it carries as much as the others
	}
	var members []member
	for i := range 4 + r.IntN(4) {
		members = append(members, member{Instance: pipeline.Instance{ID: fmt.Sprintf("old-%d", i)}})
		if i > 1 && r.Chance(0.3) {
			members[i].End = r.Span(10_000, 90_000)
		}
	}
	for i := range r.IntN(5) {
		m := member{Instance: pipeline.Instance{ID: fmt.Sprintf("new-%d", i), Start: r.Span(10_000, 80_000)},
			pace: r.Between(1, 60_000)}
		if r.Chance(0.2) {
			m.End = m.Start + r.Span(5000, 60_000)
		}
		members = append(members, m)
	}
	share := func(m member, t int64) float64 {
		switch {
		case t < m.Start || m.End != 0 && t >= m.End:
			return 0
		case m.pace == 0:
			return 1
		default:
			return min(1, float64(t-m.Start)/m.pace)
		}
	}
	for t := int64(0); t <= now; t += 1000 {
		all := 0.0
		for _, m := range members {
			all += share(m, t)
		}
		for i := range members {
			members[i].Samples = append(members[i].Samples, pipeline.Sample{T: t, V: 4 * share(members[i], t) / all})
		}
	}
	in := at(now)
	for _, m := range members {
		in.Instances = append(in.Instances, m.Instance)
	}
	return in
}

// Scaling alone makes no trend: while a constant load is shared by a changing number of instances the aggregate stays
// what it is, the trend is never up, and what there is of one down is that of the tick on which a weight is complete
// and Δ claims a growth that absorption had made before: less than a thousandth of the load per tick.
func TestScalingAloneMakesNoTrend(t *testing.T) {
	p := defaults()
	p.Window = 100 * time.Second // from before the first change on
	p.ReactionDelay = 0
	absorbed := 0
	for seed := range uint64(150) {
		r := newFleets(seed)
		in := r.scalingAlone(99_000)
		_, s := stages(t, p, in)
		require.Equal(t, int64(0), s.First)
		for k, effective := range s.Effective {
			require.InDelta(t, 4, effective, 1e-12, "seed %d, tick %d", seed, k)
			if s.Weight[k] < float64(s.Active[k]) {
				absorbed++
			}
		}
		for now := int64(10_000); now <= 99_000; now += 7000 {
			in.Now = now
			f := run(t, p, in)
			require.LessOrEqual(t, f.Trend, 1e-12, "seed %d at %d", seed, now)
			require.GreaterOrEqual(t, f.Trend, -4e-3, "seed %d at %d", seed, now)
			require.InDelta(t, 4, f.Level, 0.04, "seed %d at %d", seed, now)
			require.Equal(t, pipeline.Steady, f.Decision.Direction)
		}
	}
	require.Greater(t, absorbed, 1000)
}

// The order of instances and the order in which samples arrived change nothing, bit for bit.
func TestOrderDoesNotMatter(t *testing.T) {
	forFleets(t, 1500, func(r fleets, params pipeline.Params, in pipeline.Input, _ pipeline.Forecast) {
		// Of samples that share a time the last one counts: that order does matter, so leave one of each.
		unique := func(samples []pipeline.Sample) []pipeline.Sample {
			seen := map[int64]bool{}
			return slices.DeleteFunc(slices.Clone(samples), func(s pipeline.Sample) bool {
				twice := seen[s.T]
				seen[s.T] = true
				return twice
			})
		}
		shuffle := func(samples []pipeline.Sample) []pipeline.Sample {
			samples = slices.Clone(samples)
			r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
			return samples
		}
		in.Demand = unique(in.Demand)
		for i := range in.Instances {
			in.Instances[i].Samples = unique(in.Instances[i].Samples)
		}
		p, err := pipeline.New(params)
		require.NoError(t, err)
		want, err := p.Run(in)
		if errors.Is(err, pipeline.ErrNoData) {
			return // a duplicate was the only other sample
		}
		require.NoError(t, err)

		shuffled := in
		shuffled.Demand = shuffle(in.Demand)
		shuffled.Instances = slices.Clone(in.Instances)
		for i := range shuffled.Instances {
			shuffled.Instances[i].Samples = shuffle(in.Instances[i].Samples)
		}
		r.Shuffle(len(shuffled.Instances), func(i, j int) {
			shuffled.Instances[i], shuffled.Instances[j] = shuffled.Instances[j], shuffled.Instances[i]
		})
		require.Equal(t, want, run(t, params, shuffled))
	})
}

// The same window gives the same answer, bit for bit, on a pipeline that is new and on one that has run on others.
func TestRunsLeaveNothingBehind(t *testing.T) {
	for _, method := range methods {
		t.Run(string(method), func(t *testing.T) { runsLeaveNothingBehind(t, method) })
	}
}

func runsLeaveNothingBehind(t *testing.T, method pipeline.Method) {
	params := newFleets(7).params()
	params.Method = method
	used, err := pipeline.New(params)
	require.NoError(t, err)
	require.Equal(t, params, used.Params())
	compared := 0
	for seed := range uint64(2000) {
		r := newFleets(seed)
		in := r.input(params)
		fresh, err := pipeline.New(params)
		require.NoError(t, err)
		want, wantErr := fresh.Run(in)
		for range 2 {
			got, err := used.Run(in)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got, "seed %d", seed)
		}
		if wantErr == nil {
			compared++
		}
	}
	require.Greater(t, compared, 1000)
}

// Samples from before the window change nothing, but for the newest of them: a restart that can read the window again,
// and that one, answers as before. (The adaptive method estimates the spacing from all samples.)
func TestOlderSamplesDoNotMatter(t *testing.T) {
	forFleetsBy(t, pipeline.Holt, 1500, func(r fleets, params pipeline.Params, in pipeline.Input, want pipeline.Forecast) {
		step := params.Interval.Milliseconds()
		start := in.Now - params.Window.Milliseconds() // the newest sample up to here is kept
		older := func(samples []pipeline.Sample) []pipeline.Sample {
			newest := int64(math.MinInt64)
			for _, s := range samples {
				if s.T <= start && !math.IsNaN(s.V) && !math.IsInf(s.V, 0) &&
					(params.Model.Kind != pipeline.Quadratic || s.V >= 0) {
					newest = max(newest, s.T)
				}
			}
			if newest == math.MinInt64 {
				return samples
			}
			samples = slices.Clone(samples)
			for range 1 + r.IntN(20) {
				samples = append(samples, pipeline.Sample{T: newest - 1 - r.Span(0, 100*step), V: r.Between(0, 1000)})
			}
			return samples
		}
		more := in
		more.Instances = slices.Clone(in.Instances)
		for i := range more.Instances {
			more.Instances[i].Samples = older(more.Instances[i].Samples)
		}
		require.Equal(t, want, run(t, params, more))
	})
}

func TestInputIsNotModified(t *testing.T) {
	forFleets(t, 1000, func(_ fleets, params pipeline.Params, in pipeline.Input, _ pipeline.Forecast) {
		before := fmt.Sprint(in) // reads NaN as equal to itself
		run(t, params, in)
		require.Equal(t, before, fmt.Sprint(in))
	})
}

func TestInputIsNotKept(t *testing.T) {
	twice := func() []pipeline.Instance {
		instances := table4()
		instances[1].ID = instances[0].ID
		return instances
	}
	for name, input := range map[string]func() pipeline.Input{
		"a forecast": func() pipeline.Input { return at(6000, table4()...) },
		"no data":    func() pipeline.Input { return at(-1_000_000, table4()...) },
		"refused":    func() pipeline.Input { return at(6000, twice()...) },
	} {
		p, err := pipeline.New(defaults())
		require.NoError(t, err)
		gone := func() weak.Pointer[pipeline.Instance] {
			in := input()
			pointer := weak.Make(&in.Instances[0])
			_, _ = p.Run(in)
			return pointer
		}()
		runtime.GC()
		require.Nil(t, gone.Value(), name)
		runtime.KeepAlive(p)
	}
}

// Moving everything in time by whole ticks changes nothing but the times.
func TestTimeHasNoOrigin(t *testing.T) {
	forFleets(t, 1000, func(r fleets, params pipeline.Params, in pipeline.Input, want pipeline.Forecast) {
		by := params.Interval.Milliseconds() * r.Span(-1_000_000, 1_000_000)
		moved := in
		moved.Now += by
		if in.TargetRose != pipeline.Never {
			moved.TargetRose += by
		}
		if in.Since != 0 {
			moved.Since += by
		}
		move := func(samples []pipeline.Sample) []pipeline.Sample {
			samples = slices.Clone(samples)
			for i := range samples {
				samples[i].T += by
			}
			return samples
		}
		moved.Demand = move(in.Demand)
		moved.Instances = slices.Clone(in.Instances)
		for i := range moved.Instances {
			m := &moved.Instances[i]
			m.Start += by
			if m.End != 0 {
				m.End += by
			}
			m.Samples = move(m.Samples)
		}
		want.Now += by
		want.Tick += by
		require.Equal(t, want, run(t, params, moved))
	})
}

// Pipelines may work in one memory after another, whatever their parameters: nothing of a run is left in it.
func TestSharedMemoryChangesNothing(t *testing.T) {
	r := newFleets(11)
	var shared pipeline.Memory
	for range 2000 {
		params := r.params()
		in := r.input(params)
		params.Method = pick(r, methods...)
		p, err := pipeline.New(params)
		require.NoError(t, err)
		want, wantErr := p.Run(in)
		got, err := p.RunIn(&shared, in)
		require.Equal(t, wantErr, err)
		require.Equal(t, want, got)
	}
}

// Every forecast is of finite numbers within their bounds, by any method.
func TestForecastsHoldTheirBounds(t *testing.T) {
	forFleets(t, 3000, func(_ fleets, params pipeline.Params, in pipeline.Input, want pipeline.Forecast) {
		checkForecast(t, params, in, want)
	})
}

// To the adaptive method it is all the same in what unit a load is measured: where the metric and
// all that it is held against is 64 times as much, the forecast is as well, and the decision stays.
// By a power of 4 that is so to the bit.
func TestUnitsDoNotMatter(t *testing.T) {
	forFleetsBy(t, pipeline.Adaptive, 1500,
		func(_ fleets, params pipeline.Params, in pipeline.Input, want pipeline.Forecast) {
			const c = 64
			params.Threshold, params.Model.Baseline, params.Saturation.Max = c*params.Threshold,
				c*params.Model.Baseline, c*params.Saturation.Max
			ofLoad := float64(c)
			if params.Model.Kind == pipeline.Quadratic {
				ofLoad *= c
			}
			times := func(c float64, samples []pipeline.Sample) []pipeline.Sample {
				samples = slices.Clone(samples)
				for i := range samples {
					samples[i].V *= c
				}
				return samples
			}
			in.Demand = times(ofLoad, in.Demand)
			in.Instances = slices.Clone(in.Instances)
			for i := range in.Instances {
				in.Instances[i].Samples = times(c, in.Instances[i].Samples)
			}
			for _, x := range []*float64{&want.Level, &want.Error, &want.Trend, &want.Total, &want.PlannedLoad, &want.Holds,
				&want.Need.Load, &want.Need.Margin, &want.Need.PerInstance} {
				*x *= ofLoad
			}
			for _, x := range []*float64{&want.LoadNow, &want.LoadPredicted, &want.ServedLoad} {
				*x *= c
			}
			require.Equal(t, want, run(t, params, in))
		})
}
