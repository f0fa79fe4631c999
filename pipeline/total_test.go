package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// adaptive are the default parameters of the adaptive method, with room to scale.
func adaptive() pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = tau, 20
	return p
}

// clipping are parameters of the adaptive method under which what reads 0.98 or more is clipped.
func clipping() pipeline.Params {
	p := adaptive()
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
	return p
}

// constants returns instances that have read the same for a minute, up to 60 s.
func constants(values ...float64) []pipeline.Instance {
	var instances []pipeline.Instance
	for i, v := range values {
		instances = append(instances,
			pipeline.Instance{ID: fmt.Sprintf("old-%d", i), Samples: everySecond(0, repeat(61, v)...)})
	}
	return instances
}

// What a newcomer reads counts up to the mean of the established until it is T_R old, then in full.
func TestNewcomersCountNoMoreThanOthers(t *testing.T) {
	for name, c := range map[string]struct{ reads, counts float64 }{
		"warming up":   {0.9, 0.5},
		"as others":    {0.5, 0.5},
		"taking over":  {0.1, 0.1},
		"doing little": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := pipeline.Instance{ID: "new", Start: 20_000, Samples: everySecond(20_000, repeat(41, c.reads)...)}
			_, s := stages(t, adaptive(), at(60_000, append(constants(0.4, 0.6), fresh)...))
			for k, got := range s.Effective {
				want := 1.0
				switch at := s.First + int64(k)*1000; {
				case at >= 50_000:
					want += c.reads
				case at >= 20_000:
					want += c.counts
				}
				require.InDelta(t, want, got, 1e-12, "tick %d", k)
			}
		})
	}
}

// Instances that started together with the first of a fleet count in full at once.
func TestFirstInstancesCountInFull(t *testing.T) {
	var instances []pipeline.Instance
	for _, id := range []string{"a", "b"} {
		instances = append(instances, pipeline.Instance{ID: id, Start: 1000, Samples: everySecond(1000, 0.3, 0.9, 0.4)})
	}
	_, s := stages(t, adaptive(), at(3000, instances...))
	require.InDeltaSlice(t, []float64{0.6, 1.8, 0.8}, s.Effective, 1e-12)

	left := pipeline.Instance{ID: "left", End: 2500, Samples: everySecond(0, 0.2, 0.2, 0.2)}
	fresh := pipeline.Instance{ID: "new", Start: 1500, Samples: everySecond(2000, 0.9, 0.9, 0.9)}
	_, s = stages(t, adaptive(), at(4000, left, fresh))
	require.InDeltaSlice(t, []float64{0.2, 0.2, 0.4, 0.9, 0.9}, s.Effective, 1e-12,
		"there is no mean where all others have left")
}

// An instance is clipped that reads as much as it can for three ticks in a row, and the fleet where half of it is.
func TestClippedTicks(t *testing.T) {
	const o, x = 0.5, 1.0 // below, and in the zone
	for name, c := range map[string]struct {
		reads [][]float64
		want  string // a tick each
	}{
		"three in a row":            {[][]float64{{o, x, x, x, o, o}}, ".xxx.."},
		"at the zone's bottom":      {[][]float64{{o, 0.98, 0.98, 0.98, o, o}}, ".xxx.."},
		"just below the zone":       {[][]float64{{o, x, 0.979, x, o, o}}, "......"},
		"two in a row":              {[][]float64{{x, x, o, o, x, x}}, "......"},
		"up to now":                 {[][]float64{{o, o, x, x, x, x}}, "..xxxx"},
		"all the time":              {[][]float64{{x, x, x, x, x, x}}, "xxxxxx"},
		"half of two":               {[][]float64{{o, x, x, x, o, o}, {o, o, o, o, o, o}}, ".xxx.."},
		"one of three":              {[][]float64{{o, x, x, x, o, o}, {o, o, o, o, o, o}, {o, o, o, o, o, o}}, "......"},
		"two of three":              {[][]float64{{o, x, x, x, o, o}, {o, o, x, x, x, o}, {o, o, o, o, o, o}}, "..xx.."},
		"three ticks of two by one": {[][]float64{{o, x, x, o, o, o}, {o, o, o, x, o, o}}, "......"},
	} {
		t.Run(name, func(t *testing.T) {
			var instances []pipeline.Instance
			for i, reads := range c.reads {
				instances = append(instances, pipeline.Instance{ID: fmt.Sprint(i), Samples: everySecond(0, reads...)})
			}
			marks := func(p pipeline.Params) string {
				_, s := stages(t, p, at(5000, instances...))
				return marked(s.Clipped)
			}
			assert.Equal(t, c.want, marks(clipping()))
			assert.Equal(t, "......", marks(adaptive()), "a bound that is off does nothing")
		})
	}
}

// An instance that works on few events, each of which keeps it busy for a while, is not clipped as
// soon as one of them does.
func TestClippedTicksOfFewEvents(t *testing.T) {
	var few []float64
	for range 12 {
		few = append(few, 1, 1, 1, 1, 0, 0)
	}
	for name, c := range map[string]struct {
		reads []float64
		want  int // newest ticks that are clipped
	}{
		"four ticks in six":         {few, 0},
		"and ten more":              {append(slices.Clip(few), repeat(10, 1)...), 0},
		"and twenty-five more":      {append(slices.Clip(few), repeat(25, 1)...), 25},
		"a jump after calm":         {append(repeat(72, 0.5), repeat(4, 1)...), 4},
		"a jump after nothing":      {append(repeat(72, 0), repeat(4, 1)...), 4},
		"a jump between many waves": {append(slices.Repeat([]float64{0.4, 0.6, 0.5}, 24), repeat(4, 1)...), 4},
	} {
		t.Run(name, func(t *testing.T) {
			n := len(c.reads)
			p := clipping()
			p.Window = 5 * time.Minute
			_, s := stages(t, p, at(int64(n-1)*1000, pipeline.Instance{ID: "a", Samples: everySecond(0, c.reads...)}))
			assert.Equal(t, strings.Repeat(".", n-c.want)+strings.Repeat("x", c.want), marked(s.Clipped))
		})
	}
}

func marked(clipped []bool) string {
	var marks strings.Builder
	for _, c := range clipped {
		if c {
			marks.WriteByte('x')
		} else {
			marks.WriteByte('.')
		}
	}
	return marks.String()
}

// Newcomers say nothing about whether the fleet is clipped, neither that it is nor that it is not.
func TestNewcomersAreNotClipped(t *testing.T) {
	fresh := func(v float64, n int) []pipeline.Instance {
		var instances []pipeline.Instance
		for i := range n {
			instances = append(instances,
				pipeline.Instance{ID: fmt.Sprintf("new-%d", i), Start: 40_000, Samples: everySecond(40_000, repeat(21, v)...)})
		}
		return instances
	}
	_, s := stages(t, clipping(), at(60_000, append(constants(1, 1), fresh(0.2, 7)...)...))
	require.NotContains(t, s.Clipped, false)
	_, s = stages(t, clipping(), at(60_000, append(constants(0.5, 0.5), fresh(1, 7)...)...))
	require.NotContains(t, s.Clipped, true)
}

func TestDemandIsAdded(t *testing.T) {
	in := at(60_000, constants(0.4, 0.6)...)
	in.Demand = everySecond(30_000, 1, 2, 3)
	_, s := stages(t, adaptive(), in)
	for k, got := range s.Effective {
		want := 1.0
		switch at := s.First + int64(k)*1000; {
		case at >= 32_000:
			want = 4
		case at >= 30_000:
			want += 1 + float64(at-30_000)/1000
		}
		require.InDelta(t, want, got, 1e-12, "tick %d", k)
		require.InDelta(t, 1, s.Raw[k], 1e-12)
	}
}

// Sums are of the aggregate that the model makes of values.
func TestTotalOfModels(t *testing.T) {
	for name, c := range map[string]struct {
		model pipeline.Model
		want  float64
	}{
		"linear":    {linear, 1.4},
		"overhead":  {overhead, 1.4 - 2*overhead.Baseline},
		"quadratic": {quadratic, 0.6*0.6 + 0.8*0.8},
	} {
		t.Run(name, func(t *testing.T) {
			p := adaptive()
			p.Model = c.model
			f, s := stages(t, p, at(60_000, constants(0.6, 0.8)...))
			for _, got := range s.Effective {
				require.InDelta(t, c.want, got, 1e-12)
			}
			require.InDelta(t, c.want, f.Level, 1e-9)
			require.InDelta(t, c.want/c.model.Load(tau), f.Required, 1e-9)
			require.Equal(t, 2.0, f.Weight)
		})
	}
}

// naiveTotal gives the aggregates of the adaptive method from what each instance reads at each
// tick, by the sentences that say what they are.
func naiveTotal(p pipeline.Params, in pipeline.Input, s stageValues) (totals []float64, clipped []bool) {
	instances := slices.Clone(in.Instances)
	slices.SortFunc(instances, func(a, b pipeline.Instance) int { return strings.Compare(a.ID, b.ID) })
	active := func(i pipeline.Instance, t int64) bool { return i.Start <= t && (i.End == 0 || t < i.End) }
	grown := func(i pipeline.Instance, t int64) bool {
		joined := slices.ContainsFunc(instances, func(other pipeline.Instance) bool {
			return other.Start < i.Start && (other.End == 0 || other.End > i.Start)
		})
		return !joined || t >= i.Start+p.RedistributionTimeout.Milliseconds()
	}
	tick := func(k int) int64 { return s.First + int64(k)*p.Interval.Milliseconds() }
	high := func(k, i int) bool { // of an established instance
		return p.Saturation.Enabled && 0 <= k && k < len(s.Imputed) && active(instances[i], tick(k)) &&
			grown(instances[i], tick(k)) &&
			s.Imputed[k][i] >= p.Saturation.Max*(1-p.Saturation.Zone)
	}
	events := naiveEvents(p, s,
		func(k, i int) bool { return active(instances[i], tick(k)) && grown(instances[i], tick(k)) })
	held := 0.0
	for k, row := range s.Imputed {
		sum, established, atTop := 0.0, 0, 0
		var fresh []float64
		for i, v := range row {
			switch {
			case !active(instances[i], tick(k)):
			case !grown(instances[i], tick(k)):
				fresh = append(fresh, p.Model.Load(v))
			default:
				sum += p.Model.Load(v)
				established++
				run := 0 // of ticks at the top, k among them
				for j := k; high(j, i); j++ {
					run++
				}
				for j := k - 1; run > 0 && high(j, i); j-- {
					run++
				}
				if run >= max(3, events) {
					atTop++
				}
			}
		}
		total, moving, begins := sum, 0.0, false
		for _, g := range fresh {
			if average := sum / float64(established); established > 0 {
				moving += math.Max(0, average-g)
				g = math.Min(g, average)
			}
			total += g
		}
		for i, instance := range instances {
			if active(instance, tick(k)) && !grown(instance, tick(k)) && (k == 0 || !active(instance, tick(k-1))) {
				begins = true
			}
			ended := 0 // the first tick at which it had
			for ended < len(s.Imputed) && (instance.End == 0 || tick(ended) < instance.End) {
				ended++
			}
			carried := ended > 0 && ended <= k && active(instance, tick(ended-1))
			if carried && tick(k)-tick(ended) < p.RedistributionTimeout.Milliseconds() {
				moving += p.Model.Load(s.Imputed[ended-1][i])
			}
			begins = begins || carried && ended == k
		}
		if begins {
			held = 0
			for _, x := range totals[max(0, k-5):] {
				held += x / math.Min(5, float64(k))
			}
		}
		total = math.Max(0, total)
		totals = append(totals, math.Max(total, math.Min(held, total+moving)))
		clipped = append(clipped, atTop > 0 && float64(atTop) >= float64(established)/2)
	}
	return totals, clipped
}

// naiveEvents is for how many ticks 30 events keep an instance busy.
func naiveEvents(p pipeline.Params, s stageValues, established func(k, i int) bool) int {
	var bends, sum, n float64
	for i := range s.Imputed[0] {
		for k := range s.Imputed {
			if k < 15 || k+15 >= len(s.Imputed) || !established(k-15, i) || !established(k+15, i) {
				continue
			}
			bend := s.Imputed[k-15][i] - 2*s.Imputed[k][i] + s.Imputed[k+15][i]
			bends, sum, n = bends+bend*bend/6, sum+s.Imputed[k][i], n+1
		}
	}
	if sum <= 0.05*p.Saturation.Max*n {
		return 0
	}
	return int(math.Ceil(min(1e6, 30*(bends/(sum*p.Saturation.Max)))))
}

func TestNaiveTotalAgrees(t *testing.T) {
	clippedTicks := 0
	for seed := range uint64(2500) {
		r := newFleets(seed)
		params := r.params()
		params.Method = pipeline.Adaptive
		in := r.input(params)
		in.Demand = nil
		p, err := pipeline.New(params)
		require.NoError(t, err)
		f, err := p.Run(in)
		if err != nil {
			continue
		}
		s := stagesOf(t, p, in, f)
		totals, clipped := naiveTotal(params, in, s)
		peak := 1.0
		for k, total := range totals {
			peak = max(peak, math.Abs(total))
			require.InDelta(t, total, s.Effective[k], 1e-12*peak, "seed %d, tick %d", seed, k)
			if clipped[k] {
				clippedTicks++
			}
		}
		require.Equal(t, clipped, s.Clipped, "seed %d", seed)
	}
	require.Greater(t, clippedTicks, 1000)
}
