package gate

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

const step = 1000 // ms

// readings returns an instance with a reading a second.
func readings(id string, values ...float64) pipeline.Instance {
	x := pipeline.Instance{ID: id}
	for k, v := range values {
		x.Samples = append(x.Samples, pipeline.Sample{T: int64(k) * step, V: v})
	}
	return x
}

func values(x pipeline.Instance) []float64 {
	out := []float64{}
	for _, s := range x.Samples {
		out = append(out, s.V)
	}
	return out
}

func ofUnit(unit float64) Scale {
	return Scale{Unit: unit, Spacing: time.Second, Highest: math.Inf(1)}
}

func TestFilterOfOneInstance(t *testing.T) {
	for name, test := range map[string]struct{ given, want []float64 }{
		"nothing":                    {[]float64{}, []float64{}},
		"up to twice":                {[]float64{0.1, 2, 0.1}, []float64{0.1, 2, 0.1}},
		"within a factor of four":    {[]float64{1, 4, 1}, []float64{1, 4, 1}},
		"once":                       {[]float64{1, 100, 1, 1}, []float64{1, 1, 1}},
		"the newest":                 {[]float64{1, 1, 100}, []float64{1, 1}},
		"the only one":               {[]float64{100}, []float64{}},
		"repeated":                   {[]float64{1, 100, 80, 1}, []float64{1, 100, 80, 1}},
		"repeated by a quarter":      {[]float64{1, 100, 25, 1}, []float64{1, 100, 25, 1}},
		"not repeated by a fifth":    {[]float64{1, 100, 20, 1}, []float64{1, 1}},
		"repeated eight readings on": {[]float64{100, 1, 1, 1, 1, 1, 1, 1, 90}, []float64{100, 1, 1, 1, 1, 1, 1, 1, 90}},
		"nine readings on it is not": {[]float64{100, 1, 1, 1, 1, 1, 1, 1, 1, 90}, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
		"near what was repeated": {[]float64{90, 90, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100},
			[]float64{90, 90, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100}},
		"far from the confirmed readings": {[]float64{9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100},
			[]float64{9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"far above a high one":         {[]float64{50, 50, 50, 5000, 50, 50}, []float64{50, 50, 50, 50, 50}},
		"two that are far apart":       {[]float64{1, 100, 1, 1e6, 1}, []float64{1, 1, 1}},
		"a fall":                       {[]float64{4, 4, 4, 4, 4, 0, 0, 4}, []float64{4, 4, 4, 4, 4, 0, 0, 4}},
		"low once":                     {[]float64{4, 4, 4, 4, 0, 4}, []float64{4, 4, 4, 4, 4}},
		"low last":                     {[]float64{4, 4, 4, 4, 0}, []float64{4, 4, 4, 4}},
		"low twice":                    {[]float64{4, 4, 4, 4, 0, 0}, []float64{4, 4, 4, 4, 0, 0}},
		"low again soon":               {[]float64{4, 4, 4, 4, 0, 4, 4, 4, 0, 4}, []float64{4, 4, 4, 4, 0, 4, 4, 4, 0, 4}},
		"low before anything is known": {[]float64{4, 4, 0, 4}, []float64{4, 4, 0, 4}},
		"low among readings that vary": {[]float64{4, 2, 3, 1, 4, 0.1, 4, 2}, []float64{4, 2, 3, 1, 4, 0.1, 4, 2}},
		"a quarter":                    {[]float64{4, 4, 4, 4, 1, 4}, []float64{4, 4, 4, 4, 1, 4}},
		"after one that is far above":  {[]float64{1, 1, 1, 1, 900, 1}, []float64{1, 1, 1, 1, 1}},
		"exactly four times is known":  {[]float64{2, 2, 8, 2}, []float64{2, 2, 8, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Filter
			all := []pipeline.Instance{readings("a", test.given...)}
			refusals := f.Apply(all, ofUnit(1))
			assert.Equal(t, test.want, values(all[0]))
			assert.Len(t, refusals, len(test.given)-len(test.want))
		})
	}
}

func TestFilterOfSeveralInstances(t *testing.T) {
	fall := []float64{1, 1, 1, 1, 1, 0}
	jump, flat, once := []float64{1, 1, 100}, []float64{1, 1, 1}, []float64{1, 100, 1}
	for name, test := range map[string]struct {
		given [][]float64
		lost  int
	}{
		"all jump":                       {[][]float64{jump, jump, jump}, 0},
		"two of three jump":              {[][]float64{jump, jump, flat}, 0},
		"one of three jumps":             {[][]float64{jump, flat, flat}, 1},
		"one of two jumps":               {[][]float64{jump, flat}, 1},
		"two of five jump":               {[][]float64{jump, jump, flat, flat, flat}, 2},
		"all jump once":                  {[][]float64{once, once}, 0},
		"at different times":             {[][]float64{{1, 100, 1, 1, 1}, {1, 1, 1, 1, 100}}, 2},
		"one of two falls":               {[][]float64{fall, {1, 1, 1, 1, 1, 2}}, 0},
		"one of them much more":          {[][]float64{jump, jump, {1, 1, 1e6}}, 1},
		"the height of another":          {[][]float64{{80, 80, 80}, jump}, 0},
		"another that is not read twice": {[][]float64{{100}, flat}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var f Filter
			var all []pipeline.Instance
			for i, x := range test.given {
				all = append(all, readings(fmt.Sprint(i), x...))
			}
			assert.Len(t, f.Apply(all, ofUnit(1)), test.lost)
		})
	}
}

func TestRefusalsAreNamed(t *testing.T) {
	var f Filter
	all := []pipeline.Instance{readings("a", 1, 70, 1, 1, 1), readings("b", 1, 1, 1, 1, 90)}
	refusals := f.Apply(all, ofUnit(0.7))
	require.Len(t, refusals, 2)
	assert.EqualError(t, &refusals[0],
		"the reading 70 of 00:00:01 is 100 times as high as the threshold, and no other one is near it: "+
			"it is taken for an error, and counts once another reading of the pod, or of half of the pods, repeats it")
	assert.False(t, refusals[0].Newest)
	assert.Equal(t, "b", refusals[1].Instance)
	assert.True(t, refusals[1].Newest)
}

// TestFilterJudgesLoads has a model whose load is not the value.
func TestFilterJudgesLoads(t *testing.T) {
	var f Filter
	s := ofUnit(1)
	s.Model.Kind = pipeline.Quadratic
	all := []pipeline.Instance{readings("a", 1, 1.4, 1), readings("b", 1, 2.1, 1)}
	refusals := f.Apply(all, s)
	require.Len(t, refusals, 1)
	assert.Equal(t, "b", refusals[0].Instance)
}

// TestFilterAgainstItsRule compares random cases with the rule as the comment of Filter has it.
func TestFilterAgainstItsRule(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 35))
		var all []pipeline.Instance
		for i := range 1 + r.IntN(6) {
			x := pipeline.Instance{ID: fmt.Sprint(i)}
			for k := range 20 {
				v := 0.8 + 0.2*r.Float64()
				switch r.IntN(24) {
				case 0, 1, 2:
					v = math.Pow(10, 4*r.Float64())
				case 3:
					v /= 100
				}
				x.Samples = append(x.Samples, pipeline.Sample{T: int64(k)*step + int64(i), V: v})
			}
			if r.IntN(5) == 0 {
				x.End = 20_000
			}
			all = append(all, x)
		}
		want := rule(all)
		var f Filter
		f.Apply(all, Scale{Unit: 1, Spacing: time.Second / 2, Highest: math.Inf(1)})
		for i := range all {
			require.Equal(t, want[i], values(all[i]), "seed %d", seed)
		}
	}
}

func same(a, b float64) bool { return a >= b/4 && a <= b*4 }

// rule is the comment of Filter, one reading after the other.
func rule(all []pipeline.Instance) (want [][]float64) {
	running := 0
	for i := range all {
		if all[i].End == 0 {
			running++
		}
	}
	kept := ruleOfHigh(all, max(2, (running+1)/2))
	for i := range kept {
		kept[i].End = all[i].End
		want = append(want, values(kept[i]))
		if running == 1 && all[i].End == 0 {
			want[i] = ruleOfLow(kept[i].Samples)
		}
	}
	return want
}

func ruleOfHigh(all []pipeline.Instance, needed int) []pipeline.Instance {
	near := func(i, k int) bool {
		for j := max(0, k-8); j <= min(k+8, len(all[i].Samples)-1); j++ {
			if j != k && same(all[i].Samples[j].V, all[i].Samples[k].V) {
				return true
			}
		}
		return false
	}
	known := 0.0
	for i := range all {
		for k, x := range all[i].Samples {
			if x.V > 2 && near(i, k) {
				known = max(known, x.V)
			}
		}
	}
	var kept []pipeline.Instance
	for i := range all {
		kept = append(kept, pipeline.Instance{})
		for k, x := range all[i].Samples {
			votes := 0
			for j := range all {
				if y := all[j].Samples[k].V; same(y, x.V) && y > max(2, 4*known) && !near(j, k) {
					votes++
				}
			}
			if x.V <= max(2, 4*known) || near(i, k) || votes >= needed {
				kept[i].Samples = append(kept[i].Samples, x)
			}
		}
	}
	return kept
}

func ruleOfLow(of []pipeline.Sample) []float64 {
	isAlone := func(k int) bool {
		if k == 0 {
			return false
		}
		neighbor := of[k-1].V
		if k < len(of)-1 {
			neighbor = min(neighbor, of[k+1].V)
		}
		var steps []float64
		for j := max(0, k-8); j <= min(k+8, len(of)-1); j++ {
			if j != k && of[j].V <= neighbor/5 {
				return false
			}
			if j > max(0, k-8) && j != k && j != k+1 {
				steps = append(steps, math.Abs(of[j].V-of[j-1].V))
			}
		}
		return of[k].V <= neighbor/5 && len(steps) >= 3 && neighbor-of[k].V > 5*sum(steps)/float64(len(steps))
	}
	kept := []float64{}
	for k, x := range of {
		if !isAlone(k) {
			kept = append(kept, x.V)
		}
	}
	return kept
}

// lost counts the readings of a load that never count because they are high, or low, and those that count a reading
// late, over a window of 300 readings. The load is shared by pods.
func lost(load []float64, pods int, threshold float64, counts bool, share func(float64) float64) (high, low, late int) {
	const window = 300
	all := make([]pipeline.Instance, pods)
	given := make([][]pipeline.Sample, pods)
	var f Filter
	s := Scale{Unit: threshold, Spacing: time.Second, Counted: counts, Highest: math.Inf(1)}
	for k, x := range load {
		for i := range all {
			given[i] = append(given[i], pipeline.Sample{T: int64(k) * step, V: share(x / float64(pods))})
			all[i].Samples = append(all[i].Samples[:0], given[i][max(0, len(given[i])-window):]...)
		}
		for _, r := range f.Apply(all, s) {
			switch {
			case r.Newest:
				late++
			case r.Sample.T != int64(k-repeats)*step: // one of the next may repeat it
			case r.Factor > 0:
				high++
			default:
				low++
			}
		}
	}
	return high, low, late
}

// TestRecordedLoadsLoseNothing reads the traces in the folder FORESAIL_TRACES, each as the load of a target, and of
// pods, that are small or much too small for it.
func TestRecordedLoadsLoseNothing(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("FORESAIL_TRACES"), "*.csv"))
	require.NoError(t, err)
	if os.Getenv("FORESAIL_TRACES") == "" || len(files) == 0 {
		t.Skip("FORESAIL_TRACES: must be the folder of the traces")
	}
	for _, file := range files {
		load := recorded(t, file)
		mean := sum(load) / float64(len(load))
		for _, pods := range []int{1, 5} {
			for _, use := range []float64{0.3, 0.7, 2} {
				r := rand.New(rand.NewPCG(1, uint64(pods)))
				high, low, late := lost(load, pods, mean/float64(pods)/use, pods > 1, counted(r, pods))
				name := fmt.Sprintf("%s on %d pods at %g of the threshold", filepath.Base(file), pods, use)
				t.Logf("%s: of %d readings %d high and %d low ones never count, %d count late", name,
					len(load)*pods, high, low, late)
				assert.Zero(t, high, "%s: load is lost", name)
				assert.LessOrEqual(t, low, len(load)*pods/500, name)
				assert.LessOrEqual(t, late, len(load)*pods/100, name)
			}
		}
	}
}

func recorded(t *testing.T, file string) (load []float64) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, line := range lines[1:] {
		v, err := strconv.ParseFloat(line[1], 64)
		require.NoError(t, err)
		load = append(load, v)
	}
	return load
}

func sum(all []float64) (s float64) {
	for _, v := range all {
		s += v
	}
	return s
}

// counted returns how many of requests at a rate arrive in a second, unless one pod has them all.
func counted(r *rand.Rand, pods int) func(float64) float64 {
	return func(rate float64) float64 {
		if pods == 1 {
			return rate
		}
		if rate > 30 {
			return max(0, math.Round(rate+math.Sqrt(rate)*r.NormFloat64()))
		}
		return poisson(r, rate)
	}
}

func poisson(r *rand.Rand, mean float64) (n float64) {
	for p := r.Float64(); p > math.Exp(-mean); n++ {
		p *= r.Float64()
	}
	return n
}

// TestSparseLoadsLoseNothing has so few requests that a second with one is far above the threshold: a language model
// whose pods take a request every ten seconds.
func TestSparseLoadsLoseNothing(t *testing.T) {
	for _, rate := range []float64{0.01, 0.03, 0.1, 0.3, 1} {
		r := rand.New(rand.NewPCG(2, 3))
		load := make([]float64, 20_000)
		total := 0.0
		for k := range load {
			load[k] = poisson(r, rate)
			total += load[k]
		}
		high, low, late := lost(load, 1, 0.1, true, func(v float64) float64 { return v })
		assert.Zero(t, high+low, "%g requests a second at a threshold of 0.1: of %g requests", rate, total)
		assert.LessOrEqual(t, late, 3, rate)
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, high := range []bool{false, true} {
		b.Run(fmt.Sprintf("high=%v", high), func(b *testing.B) {
			const pods, window = 20, 300
			all := make([]pipeline.Instance, pods)
			for i := range all {
				for k := range window {
					v := 0.5
					if high {
						v = 50
					}
					all[i].Samples = append(all[i].Samples, pipeline.Sample{T: int64(k) * step, V: v})
				}
			}
			var f Filter
			for b.Loop() {
				f.Apply(all, ofUnit(0.7))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pods, "ns/reading")
		})
	}
}

func BenchmarkLimits(b *testing.B) {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = 0.7, 20
	l := LimitsOf(&p, false)
	for b.Loop() {
		_, _ = l.Check(0.5)
	}
}

// TestFilterOfALongWindow has a third of a long window removed. Each reading must be moved once: to move all later ones
// for each that is removed takes several times as long as is allowed here, and this way a small part of it.
func TestFilterOfALongWindow(t *testing.T) {
	high := []float64{100, 500, 2500} // none within a factor of four of another one
	given := make([]float64, 400_000)
	for k := range given {
		given[k] = 1
		if k%3 == 1 {
			given[k] = high[k/3%len(high)]
		}
	}
	all := []pipeline.Instance{readings("a", given...)}
	var f Filter
	begun := time.Now()
	refusals := f.Apply(all, ofUnit(1))
	took := time.Since(begun)
	require.Len(t, refusals, 133_333)
	require.Len(t, all[0].Samples, 266_667)
	for i, r := range refusals {
		require.Equal(t, pipeline.Sample{T: int64(3*i+1) * step, V: high[i%len(high)]}, r.Sample)
	}
	for i, x := range all[0].Samples {
		require.Equal(t, pipeline.Sample{T: int64(i/2*3+i%2*2) * step, V: 1}, x)
	}
	assert.Less(t, took, 3*time.Second)
}

func TestFilterOfSeveralInstancesKeepsTheOrderOfTheirSamples(t *testing.T) {
	all := []pipeline.Instance{
		readings("a", 1, 100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2000, 1), readings("b", 1, 1, 1, 1, 1, 300, 1, 1, 1, 1, 1),
		readings("c", 1, 1, 1, 1),
	}
	var f Filter
	var ids []string
	for _, r := range f.Apply(all, ofUnit(1)) {
		ids = append(ids, fmt.Sprint(r.Instance, r.Sample.T/step))
	}
	assert.Equal(t, []string{"a1", "a13", "b5"}, ids)
	assert.Len(t, all[0].Samples, 13)
	assert.Len(t, all[1].Samples, 10)
	assert.Len(t, all[2].Samples, 4)
	assert.Equal(t, int64(14*step), all[0].Samples[12].T)
}
