package nodeusage

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// newTestTable returns a table with the default options, and the rejections that it comes to.
func newTestTable(t testing.TB) (*table, map[rejection]int) {
	t.Helper()
	rejected := map[rejection]int{}
	o := Options{}.withDefaults()
	made, err := newTable(&o, func(why rejection) { rejected[why]++ })
	require.NoError(t, err)
	return made, rejected
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// sample returns one that is dated some seconds after the epoch.
func sample(seconds int64, v float64) pipeline.Sample {
	return pipeline.Sample{T: epoch + seconds*1000, V: v}
}

func TestAcceptedSamples(t *testing.T) {
	const now = 1000
	for name, test := range map[string]struct {
		resource Resource
		give     []pipeline.Sample
		want     samples.Series
		rejected map[rejection]int
	}{
		"in order": {CPU, []pipeline.Sample{sample(970, 1), sample(985, 2)},
			[]pipeline.Sample{sample(970, 1), sample(985, 2)}, nil},
		"out of order": {CPU, []pipeline.Sample{sample(985, 3), sample(955, 1), sample(970, 2)},
			[]pipeline.Sample{sample(955, 1), sample(970, 2), sample(985, 3)}, nil},
		"the same again": {CPU, []pipeline.Sample{sample(970, 1), sample(985, 2), sample(970, 1), sample(985, 2)},
			[]pipeline.Sample{sample(970, 1), sample(985, 2)}, nil},
		"corrected": {CPU, []pipeline.Sample{sample(970, 1), sample(985, 2), sample(970, 5)},
			[]pipeline.Sample{sample(970, 5), sample(985, 2)}, nil},
		"NaN": {CPU, []pipeline.Sample{sample(970, math.NaN()), sample(985, 2)},
			[]pipeline.Sample{sample(985, 2)}, map[rejection]int{badValue: 1}},
		"infinite": {CPU, []pipeline.Sample{sample(970, math.Inf(1)), sample(985, math.Inf(-1))}, nil,
			map[rejection]int{badValue: 2}},
		"negative": {Memory, []pipeline.Sample{sample(970, -1), sample(985, 0)}, []pipeline.Sample{sample(985, 0)},
			map[rejection]int{badValue: 1}},
		"too many cores": {CPU, []pipeline.Sample{sample(970, 1e7), sample(985, 1e6)},
			[]pipeline.Sample{sample(985, 1e6)},
			map[rejection]int{badValue: 1}},
		"many bytes": {Memory, []pipeline.Sample{sample(970, 1e15), sample(985, 1e19)},
			[]pipeline.Sample{sample(970, 1e15)}, map[rejection]int{badValue: 1}},
		"a little ahead": {CPU, []pipeline.Sample{sample(1015, 1)}, []pipeline.Sample{sample(1015, 1)}, nil},
		"too far ahead":  {CPU, []pipeline.Sample{sample(1016, 1)}, nil, map[rejection]int{future: 1}},
		"before the epoch": {CPU, []pipeline.Sample{{T: -5, V: 1}, {T: math.MinInt64, V: 1}}, nil,
			map[rejection]int{tooOld: 2}},
		"forgotten":         {CPU, []pipeline.Sample{sample(639, 1)}, nil, nil},
		"not yet forgotten": {CPU, []pipeline.Sample{sample(640, 1)}, []pipeline.Sample{sample(640, 1)}, nil},
		"before the window": {CPU, []pipeline.Sample{sample(85, 1), sample(86, 2), sample(990, 3)},
			[]pipeline.Sample{sample(86, 2), sample(990, 3)}, map[rejection]int{tooOld: 1}},
		"of no resource": {"disk", []pipeline.Sample{sample(985, 1)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table, rejected := newTestTable(t)
			table.update(at(epoch+now*1000),
				[]Reading{{Node: "a", Resource: test.resource, Samples: test.give},
					{Node: "", Resource: CPU, Samples: test.give}}, nil)
			if test.want == nil {
				assert.Empty(t, table.nodes)
			} else {
				require.Len(t, table.nodes, 1)
				assert.Equal(t, test.want, table.nodes["a"].of(test.resource).samples)
			}
			if test.rejected == nil {
				test.rejected = map[rejection]int{}
			}
			delete(rejected, "")
			assert.Equal(t, test.rejected, rejected)
		})
	}
}

// What was before a gap that is too long to be bridged says nothing of where things go.
func TestGaps(t *testing.T) {
	for name, test := range map[string]struct {
		gap   int64 // s
		grows bool
	}{"short": {100, true}, "long": {200, false}} {
		t.Run(name, func(t *testing.T) {
			table, _ := newTestTable(t)
			samples := append(every(epoch, climbing(20, 1, 0.1)...),
				every(epoch+test.gap*1000+60_000, same(5, 4)...)...)
			now := at(samples[len(samples)-1].T)
			table.update(now, []Reading{{Node: "a", Resource: CPU, Samples: samples}}, nil)
			u := table.loads()["a"].CPU
			if test.grows {
				assert.Greater(t, u.Predicted, 4.05)
			} else {
				assert.InDelta(t, 4, u.Predicted, 1e-9)
				assert.InDelta(t, 4, u.Upper, 1e-9)
			}
		})
	}
}

func TestNoForecastOfTooFewSamples(t *testing.T) {
	for name, test := range map[string]struct {
		samples []pipeline.Sample
		known   bool
	}{
		"one sample":        {every(epoch, 1), false},
		"45 s":              {every(epoch, 1, 1, 1, 1), false},
		"a minute":          {every(epoch, 1, 1, 1, 1, 1), true},
		"a sample a minute": {[]pipeline.Sample{sample(-180, 1), sample(-120, 1), sample(-60, 1), sample(0, 1)}, false},
		"five of them": {[]pipeline.Sample{sample(-240, 1), sample(-180, 1), sample(-120, 1),
			sample(-60, 1), sample(0, 1)}, true},
		"one of them missing": {[]pipeline.Sample{sample(-75, 1), sample(-60, 1), sample(-45, 1),
			sample(-30, 1), sample(0, 1)}, true},
	} {
		table, _ := newTestTable(t)
		table.update(at(epoch), []Reading{{Node: "a", Resource: CPU, Samples: test.samples}}, nil)
		u := table.loads()["a"].CPU
		assert.Equal(t, test.known, u != snapshot.Use{}, name)
	}
}

// Two samples have a line between them, however far apart they are, and one has none.
func TestNoForecastOfALine(t *testing.T) {
	p := predictorWith(t, chosen)
	samples := []pipeline.Sample{sample(-800, 1), sample(-400, 2), sample(0, 3)}
	for n, known := range map[int]bool{1: false, 2: false, 3: true} {
		_, ok := p.predict(samples[3-n:], 0, epoch)
		assert.Equal(t, known, ok, n)
	}
}

// Nothing is computed for what has not changed, and what is published stays.
func TestForecastsUseNewSamples(t *testing.T) {
	table, _ := newTestTable(t)
	readings := []Reading{{Node: "a", Resource: CPU, Samples: every(epoch, 1, 2, 3, 4, 5, 6)}}
	table.update(at(epoch+1000), readings, nil)
	first := table.loads()
	table.update(at(epoch+60_000), readings, nil)
	require.Equal(t, first, table.loads())
	table.update(at(epoch+60_000), []Reading{{Node: "a", Resource: CPU, Samples: every(epoch+60_000, 7)}}, nil)
	require.NotEqual(t, first, table.loads())
}

// Whatever is read, in whatever order: what is published are numbers that make sense, and what is kept is bounded.
func TestRandomReadings(t *testing.T) {
	forecasts := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		table, _ := newTestTable(t)
		now := epoch
		for range 30 {
			now += r.Int64N(60_000)
			if r.IntN(20) == 0 {
				now += r.Int64N(3_600_000) - 1_800_000
			}
			var readings []Reading
			for range r.IntN(4) {
				reading := Reading{Node: string(rune('a' + r.IntN(3))),
					Resource: []Resource{CPU, Memory, "disk"}[r.IntN(3)],
					Window:   time.Duration(r.IntN(90)-10) * time.Second}
				for range r.IntN(40) {
					v := r.Float64() * math.Pow(10, float64(r.IntN(12)))
					switch r.IntN(20) {
					case 0:
						v = math.NaN()
					case 1:
						v = -v
					case 2:
						v = math.Inf(1)
					case 3:
						v = math.MaxFloat64
					}
					reading.Samples = append(reading.Samples,
						pipeline.Sample{T: now + 30_000 - r.Int64N(1_000_000), V: v})
				}
				readings = append(readings, reading)
			}
			table.update(at(now), readings, nil)
			for name, load := range table.loads() {
				for _, s := range []*series{&table.nodes[name].cpu, &table.nodes[name].memory} {
					require.LessOrEqual(t, len(s.samples), table.limits.most)
					for i := range s.samples[min(1, len(s.samples)):] {
						require.Less(t, s.samples[i].T, s.samples[i+1].T)
					}
				}
				for _, u := range []snapshot.Use{load.CPU, load.Memory} {
					if u.Sampled.IsZero() {
						require.Zero(t, u)
						continue
					}
					forecasts++
					for _, v := range []float64{u.Now, u.Predicted, u.Upper} {
						require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "seed %d: %+v", seed, u)
					}
					require.GreaterOrEqual(t, u.Upper, u.Predicted)
					require.True(t, u.Fresh(at(now), 6*time.Minute))
					require.LessOrEqual(t, u.Sampled.UnixMilli(), now+15_000)
				}
			}
		}
	}
	require.Greater(t, forecasts, 1000)
}

// The order in which samples come makes no difference.
func TestOrderOfSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	samples := every(epoch, 1, 3, 2, 5, 4, 6, 6, 7, 9, 3, 2, 4)
	var want map[string]snapshot.NodeLoad
	for range 20 {
		table, _ := newTestTable(t)
		table.update(at(epoch+2000), []Reading{{Node: "a", Resource: Memory, Samples: samples}}, nil)
		if got := table.loads(); want == nil {
			want = got
		} else {
			require.Equal(t, want, got)
		}
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	}
}
