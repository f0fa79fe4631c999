package pipeline_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Paper, section 4.2: the samples (1001, 0.4) and (2003, 0.6) make 0.4 + 0.2·999/1002 at the tick
// 2000, and no other tick.
func TestInterpolation(t *testing.T) {
	f := run(t, defaults(), at(3000,
		pipeline.Instance{ID: "a", Samples: []pipeline.Sample{{T: 1001, V: 0.4}, {T: 2003, V: 0.6}}}))
	require.Equal(t, int64(2000), f.Tick)
	require.InDelta(t, 0.4+0.2*999/1002, f.Level, 1e-15)
	require.InDelta(t, 0.5994, f.Level, 0.0001)
}

// Paper, section 4.3: a batch that ends at 5200 and one that starts at 8100 make the ticks 6000,
// 7000 and 8000 between them.
func TestContinuityAcrossBatches(t *testing.T) {
	value := func(ms int64) pipeline.Sample { return pipeline.Sample{T: ms, V: float64(ms) / 10_000} }
	for name, window := range map[string]time.Duration{
		"both batches in the window":                         90 * time.Second,
		"the first batch before the window, but for its end": 2600 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults()
			p.Window = window
			in := at(8500, pipeline.Instance{ID: "a", Start: 6000,
				Samples: []pipeline.Sample{value(4100), value(5200), value(8100), value(8400)}})
			f, s := stages(t, p, in)
			require.Equal(t, int64(6000), s.First)
			require.Equal(t, int64(8000), f.Tick)
			near(t, []float64{0.6, 0.7, 0.8}, s.Effective, "aligned")
		})
	}
}

// Samples that are a tick apart are read in a quicker way, up to the first that is not.
func TestSamplesATickApart(t *testing.T) {
	p := defaults()
	p.Window = 40 * time.Second
	for seed := range uint64(500) {
		r := newFleets(seed)
		in := at(100_000, pipeline.Instance{ID: "a", Start: -1 << 40})
		var clean []pipeline.Sample
		for ms := 30_000 + r.Span(1, 60_000); ms < 101_000; ms += 1000 {
			clean = append(clean, pipeline.Sample{T: ms, V: r.Float64()})
		}
		for range r.IntN(3) {
			switch k := r.IntN(len(clean)); r.IntN(3) {
			case 0:
				clean = slices.Delete(clean, k, min(len(clean), k+1+r.IntN(3)))
			case 1:
				clean[k].T += r.Span(-400, 400)
			case 2:
				clean = slices.Insert(clean, 0,
					pipeline.Sample{T: pick[int64](r, math.MinInt64, math.MinInt64+10, -1_000_000), V: 1})
			}
			if len(clean) < 2 {
				break
			}
		}
		slices.SortFunc(clean, func(a, b pipeline.Sample) int { return cmp.Compare(a.T, b.T) })
		clean = slices.CompactFunc(clean, func(a, b pipeline.Sample) bool { return a.T == b.T })
		samples := slices.Clone(clean)
		if k := r.IntN(len(samples)); r.Chance(0.3) {
			samples[k].V = math.NaN()
			clean = slices.Delete(clean, k, k+1)
		}
		if r.Chance(0.3) {
			i, j := r.IntN(len(samples)), r.IntN(len(samples))
			samples[i], samples[j] = samples[j], samples[i]
		}
		in.Instances[0].Samples = samples

		want := map[int64]float64{}
		for tick := int64(61_000); tick <= 100_000; tick += 1000 {
			for k := 1; k < len(clean); k++ {
				a, b := clean[k-1], clean[k]
				if a.T < tick && tick <= b.T {
					want[tick] = a.V + (b.V-a.V)*((float64(tick)-float64(a.T))/(float64(b.T)-float64(a.T)))
				}
			}
		}
		pipe, err := pipeline.New(p)
		require.NoError(t, err)
		f, err := pipe.Run(in)
		if len(want) == 0 {
			require.ErrorIs(t, err, pipeline.ErrNoData, "seed %d", seed)
			continue
		}
		if err != nil {
			require.ErrorAs(t, err, new(*pipeline.StaleError), "seed %d", seed)
			continue
		}
		s := stagesOf(t, pipe, in, f)
		require.Len(t, s.Raw, len(want), "seed %d", seed)
		for k, v := range s.Raw {
			require.InDelta(t, want[s.First+int64(k)*1000], v, 1e-12, "seed %d, tick %d", seed, k)
		}
	}
}

func TestWindowEnds(t *testing.T) {
	p := defaults()
	p.Window = 3 * time.Second
	a := pipeline.Instance{ID: "a", Start: -1 << 40, Samples: everySecond(-10_000, make([]float64, 30)...)}
	for name, c := range map[string]struct {
		now, since, first, last int64
	}{
		"a tick W before now is outside, a tick now inside": {now: 5000, first: 3000, last: 5000},
		"between ticks":               {now: 5001, first: 3000, last: 5000},
		"just before a tick":          {now: 4999, first: 2000, last: 4000},
		"around the origin":           {now: 500, first: -2000, last: 0},
		"before the origin":           {now: -1, first: -3000, last: -1000},
		"at a negative tick":          {now: -2000, first: -4000, last: -2000},
		"since before the window":     {now: 5000, since: 1, first: 3000, last: 5000},
		"since a tick of the window":  {now: 5000, since: 4000, first: 4000, last: 5000},
		"since between ticks":         {now: 5000, since: 3001, first: 4000, last: 5000},
		"since the last tick":         {now: 5000, since: 5000, first: 5000, last: 5000},
		"since before, negative time": {now: 500, since: -1500, first: -1000, last: 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := at(c.now, a)
			in.Since = c.since
			f, s := stages(t, p, in)
			require.Equal(t, c.first, s.First)
			require.Equal(t, c.last, f.Tick)
			require.Len(t, s.Effective, int(c.last-c.first)/1000+1)
		})
	}
}

// Ticks outside [start, end) of an instance are not emitted, whatever samples there are.
func TestTicksOutsideOfTheLifetime(t *testing.T) {
	a := pipeline.Instance{ID: "a", Start: 2000, End: 5000, Samples: everySecond(0, 1, 2, 3, 4, 5, 6, 7)}
	f, s := stages(t, defaults(), at(9000, a))
	require.Equal(t, int64(2000), s.First)
	require.Equal(t, int64(4000), f.Tick)
	near(t, []float64{3, 4, 5}, s.Effective, "aligned")

	a.Start, a.End = 1999, 5001
	f, s = stages(t, defaults(), at(9000, a))
	require.Equal(t, int64(2000), s.First)
	require.Equal(t, int64(5000), f.Tick)
	near(t, []float64{3, 4, 5, 6}, s.Effective, "aligned")
}

func TestDropsUnusableSamples(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		model   pipeline.ModelKind
		samples []pipeline.Sample
		dropped int
		want    []float64 // from the tick 1000 on
	}{
		"none":         {pipeline.Linear, everySecond(1000, 1, 2, 3), 0, []float64{1, 2, 3}},
		"not a number": {pipeline.Linear, everySecond(1000, 1, nan, 3), 1, []float64{1, 2, 3}},
		"infinite": {pipeline.Linear, everySecond(1000, 1, inf, 2, -inf, 3), 2,
			[]float64{1, 1.5, 2, 2.5, 3}},
		"negative, linear":    {pipeline.Linear, everySecond(1000, 1, -2, 3), 0, []float64{1, -2, 3}},
		"negative, quadratic": {pipeline.Quadratic, everySecond(1000, 1, -2, 3), 1, []float64{1, 4, 9}},
		"one interval ahead of now": {pipeline.Linear, []pipeline.Sample{{T: 1000, V: 1}, {T: 8000, V: 8}}, 0,
			[]float64{1, 2, 3, 4, 5, 6, 7}},
		"more than an interval ahead": {pipeline.Linear,
			[]pipeline.Sample{{T: 1000, V: 1}, {T: 2000, V: 2}, {T: 8001, V: 9}}, 1, []float64{1, 2}},
		"the last of equal times": {pipeline.Linear,
			[]pipeline.Sample{{T: 1000, V: 7}, {T: 1000, V: 1}, {T: 2000, V: 2}}, 0, []float64{1, 2}},
		"but not if it is no number": {pipeline.Linear,
			[]pipeline.Sample{{T: 1000, V: 1}, {T: 1000, V: nan}, {T: 2000, V: 2}}, 1, []float64{1, 2}},
		"the last given, and out of order": {pipeline.Linear,
			[]pipeline.Sample{{T: 2000, V: 9}, {T: 1000, V: 1}, {T: 2000, V: 2}}, 0, []float64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults()
			p.Model.Kind = c.model
			f, s := stages(t, p, at(7000, pipeline.Instance{ID: "a", Samples: c.samples}))
			require.Equal(t, c.dropped, f.Dropped)
			near(t, c.want, s.Effective, "aligned")
		})
	}
}

func TestNoData(t *testing.T) {
	for name, in := range map[string]pipeline.Input{
		"no instance":           at(5000),
		"no sample":             at(5000, pipeline.Instance{ID: "a"}),
		"one sample, on a tick": at(5000, pipeline.Instance{ID: "a", Samples: everySecond(4000, 1)}),
		"no tick between two": at(5000,
			pipeline.Instance{ID: "a", Samples: []pipeline.Sample{{T: 4001, V: 1}, {T: 4999, V: 1}}}),
		"nothing but not-a-number": at(5000, pipeline.Instance{ID: "a", Samples: everySecond(0, math.NaN(), math.NaN())}),
		"before the window":        at(500_000, pipeline.Instance{ID: "a", Samples: everySecond(0, 1, 2, 3)}),
		"before it has started":    at(5000, pipeline.Instance{ID: "a", Start: 4000, Samples: everySecond(0, 1, 2, 3)}),
		"after it has ended":       at(5000, pipeline.Instance{ID: "a", End: 1, Samples: everySecond(1000, 1, 2, 3)}),
		"it ends as it starts": at(5000,
			pipeline.Instance{ID: "a", Start: 2000, End: 2000, Samples: everySecond(0, 1, 2, 3, 4)}),
		"nothing but demand": {Now: 5000, Demand: everySecond(0, 1, 2, 3), TargetRose: pipeline.Never},
		"all before Since": {Now: 5000, Since: 3500,
			Instances: []pipeline.Instance{{ID: "a", Samples: everySecond(0, 1, 2, 3)}}},
		"Since in the future": {Now: 5000, Since: 9000,
			Instances: []pipeline.Instance{{ID: "a", Samples: everySecond(0, 1, 2, 3, 4, 5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := pipeline.New(defaults())
			require.NoError(t, err)
			_, err = p.Run(in)
			require.ErrorIs(t, err, pipeline.ErrNoData)
		})
	}
}

// Data older than the limit is an error, never a number.
func TestStaleData(t *testing.T) {
	p, err := pipeline.New(defaults())
	require.NoError(t, err)
	in := at(32_000, pipeline.Instance{ID: "a", Samples: everySecond(0, 1, 1, 1)})
	_, err = p.Run(in)
	require.NoError(t, err, "as old as the limit")

	in.Now = 32_001
	_, err = p.Run(in)
	var stale *pipeline.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, pipeline.StaleError{Age: 30_001 * time.Millisecond, Limit: 30 * time.Second}, *stale)
	require.EqualError(t, err, "the newest data is 30.001s old, more than the limit of 30s")
}

func TestRejectsUnusableInputs(t *testing.T) {
	p, err := pipeline.New(defaults())
	require.NoError(t, err)

	twice := pipeline.Instance{ID: "web-1", Samples: everySecond(0, 1, 1)}
	_, err = p.Run(at(1000, twice, pipeline.Instance{ID: "web-2"}, twice))
	require.ErrorContains(t, err, `"web-1"`)

	for _, now := range []int64{math.MinInt64, -1<<53 - 1, 1<<53 + 1, math.MaxInt64} {
		_, err = p.Run(at(now, twice))
		require.ErrorContains(t, err, "now: ")
		require.ErrorContains(t, err, "between -9007199254740992 and 9007199254740992")
	}

	huge := pipeline.Instance{ID: "a", Samples: everySecond(0, 1e308, 1e308)}
	other := huge
	other.ID = "b"
	_, err = p.Run(at(1000, huge, other))
	require.ErrorIs(t, err, pipeline.ErrOverflow)
}
