package pipeline_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// learner adds loads to a past, as they come.
type learner struct {
	fleets
	params pipeline.Params
	level  float64
}

// newLearner returns parameters and loads of a seed.
func newLearner(seed uint64) *learner {
	l := &learner{fleets: newFleets(seed), level: 100}
	l.params = adaptive()
	l.params.Interval = pick(l.fleets, time.Second, 5*time.Second, 7*time.Second, 15*time.Second, time.Minute)
	l.params.StaleAfter = max(l.params.StaleAfter, 2*l.params.Interval)
	l.params.Whole = l.Chance(0.5)
	if !l.params.Whole {
		l.params.Model = pick(l.fleets, pipeline.Model{Kind: pipeline.Linear}, pipeline.Model{Kind: pipeline.Quadratic}, pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.1})
	}
	l.params.Lateness = pick(l.fleets, 0, 0.01, 0.1)
	return l
}

// load is that of a time: noise around a level that wanders, a day, jumps that recur or do not, gaps.
func (l *learner) load(t int64) float64 {
	l.level = max(1, l.level+l.NormFloat64())
	if l.Chance(0.01) {
		return math.NaN()
	}
	load := l.level * (1.5 + math.Sin(2*math.Pi*float64(t)/86_400_000)) * math.Exp(l.NormFloat64()/10)
	if t%3_600_000 < 180_000 || t%7_000_000 < 200_000 {
		load *= 3
	}
	return load
}

// learn adds loads from one time to another to some pasts alike. Now and then nothing is known for a while.
func (l *learner) learn(from, to time.Duration, pasts ...*pipeline.Past) {
	var m pipeline.Memory
	step := max(5*time.Second, l.params.Interval).Milliseconds()
	for t := from.Milliseconds(); t < to.Milliseconds(); t += step {
		if l.Chance(0.0005) {
			t += l.Span(0, 2*3_600_000) / step * step
		}
		load := l.load(t)
		for _, p := range pasts {
			p.Add(t, load, &m, &l.params)
		}
	}
}

func checkpoint(t testing.TB, p *pipeline.Past) []byte {
	t.Helper()
	data, err := p.MarshalBinary()
	require.NoError(t, err)
	return data
}

func restored(t testing.TB, data []byte) *pipeline.Past {
	t.Helper()
	var p pipeline.Past
	require.NoError(t, p.UnmarshalBinary(data))
	return &p
}

// TestCheckpointGoesOn: a past that is read from a checkpoint forecasts and learns bit for bit as the one that was written, after some
// hours and after more than a week.
func TestCheckpointGoesOn(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLearner(seed)
			past := pipeline.NewPast(&l.params)
			written := l.Millis(0, 12*3_600_000)
			const ordinary = 2
			if seed == ordinary {
				written = 8 * 24 * time.Hour
			}
			l.learn(0, written, past)
			data := checkpoint(t, past)
			if seed == ordinary {
				require.Less(t, len(data), 21_000, "of more than a week")
			}
			again := restored(t, data)
			require.Equal(t, fmt.Sprintf("%+v", past), fmt.Sprintf("%+v", again)) // in which NaN equals NaN
			require.True(t, again.Fits(&l.params))
			require.Equal(t, past.Known(), again.Known())

			const more = 3 * time.Hour
			for end := written + time.Minute; end < written+more; end += 17 * time.Minute {
				l.learn(end-17*time.Minute, end, past, again)
				in := l.window(end)
				in.Past = past
				forecast := run(t, l.params, in)
				in.Past = again
				require.Equal(t, forecast, run(t, l.params, in))
			}
			require.NotEqual(t, data, checkpoint(t, past), "nothing has been learned since")
			require.Equal(t, checkpoint(t, past), checkpoint(t, again))
		})
	}
}

// window is an input with samples up to a time.
func (l *learner) window(end time.Duration) pipeline.Input {
	now := end.Milliseconds()
	var samples []pipeline.Sample
	for t := now - l.params.Window.Milliseconds(); t <= now; t += l.params.Interval.Milliseconds() {
		samples = append(samples, pipeline.Sample{T: t, V: l.Between(0.2, 0.9)})
	}
	in := pipeline.Input{Now: now, Target: 1, Since: math.MinInt64, TargetRose: math.MinInt64, StartupTime: 30 * time.Second}
	if l.params.Whole {
		in.Total = samples
	} else {
		in.Instances = []pipeline.Instance{{ID: "a", Start: now - l.params.Window.Milliseconds()*2, Samples: samples}}
	}
	return in
}

// TestCheckpointOfTheForecastItself: the forecast with a past is not the one without, so that equal ones show something.
func TestCheckpointOfTheForecastItself(t *testing.T) {
	l := newLearner(1)
	past := pipeline.NewPast(&l.params)
	l.learn(0, 6*time.Hour, past)
	in := l.window(6 * time.Hour)
	without := run(t, l.params, in)
	in.Past = restored(t, checkpoint(t, past))
	assert.NotEqual(t, without.Total, run(t, l.params, in).Total)
}

// TestCheckpointSize states how large the smallest and the largest checkpoints are; TestCheckpointGoesOn has that of an ordinary load.
func TestCheckpointSize(t *testing.T) {
	p := learningParams()
	assert.Less(t, len(checkpoint(t, pipeline.NewPast(&p))), 9_600, "of nothing")
	// The largest is of a load that has jumped in each minute of the day: on each of five days in another fifth of them.
	largest := len(checkpoint(t, filledWith(p, 5*24*60, func(minute int64) float64 {
		if minute >= 0 && minute%5 == minute/1440 {
			return 200
		}
		return 100
	})))
	assert.Equal(t, pipeline.MaxCheckpoint, largest)
}

// filledWith returns a past that was filled with minutes of a load, ten before the first included, and has learned the hour after them.
func filledWith(p pipeline.Params, minutes int64, load func(minute int64) float64) *pipeline.Past {
	const before = 10
	past := pipeline.NewPast(&p)
	var means []pipeline.Minute
	for minute := int64(-before); minute < minutes; minute++ {
		means = append(means, pipeline.Minute{Mean: load(minute)})
	}
	past.Fill((midnight-before*60)*1000, means)
	last := means[len(means)-1].Mean
	follow(past, p, minutes*60, minutes*60+3600, func(int64) float64 { return last })
	return past
}

// TestCheckpointRefuses: data that is not a checkpoint is an error, and changes nothing. Of all bytes one in seven is changed: fields of
// two, four and eight bytes each have all of theirs changed in some of them.
func TestCheckpointRefuses(t *testing.T) { testCheckpointRefuses(t, 7) }

func testCheckpointRefuses(t *testing.T, apart int) {
	l := newLearner(3)
	past := pipeline.NewPast(&l.params)
	l.learn(0, 8*time.Hour, past)
	var m pipeline.Memory
	for t := int64(11 * 3_600_000); t < 14*3_600_000; t += 5000 {
		past.Add(t, l.load(t), &m, &l.params)
	}
	data := checkpoint(t, past)
	unchanged := func() { t.Helper(); require.True(t, bytes.Equal(data, checkpoint(t, past)), "it has changed") }
	defer unchanged()
	refuse := func(bad []byte, what string, args ...any) {
		t.Helper()
		if err := past.UnmarshalBinary(bad); err == nil {
			require.Fail(t, "accepted", append([]any{what}, args...)...)
		}
	}
	refuse(nil, "nothing")
	refuse([]byte("a checkpoint"), "text")
	for n := 0; n < len(data); n += 11 {
		refuse(data[:n], "the first %d bytes", n)
	}
	refuse(data[:len(data)-1], "all but a byte")
	refuse(append(append([]byte{}, data...), 0), "a byte more")
	for _, version := range []byte{0, pipeline.CheckpointVersion - 1, pipeline.CheckpointVersion + 1, 255} {
		refuse(append([]byte{version}, data[1:]...), "version %d", version)
	}
	floats := pipeline.FloatsOfCheckpoint(past)
	with := func(at int, v float64) []byte {
		bad := append([]byte{}, data...)
		binary.LittleEndian.PutUint64(bad[at:], math.Float64bits(v))
		return bad
	}
	unknown := 0
	for _, at := range floats {
		refuse(with(at, math.Inf(1)), "infinite at %d", at)
		refuse(with(at, math.Inf(-1)), "minus infinite at %d", at)
		if new(pipeline.Past).UnmarshalBinary(with(at, math.NaN())) == nil {
			unknown++
		}
	}
	assert.Equal(t, 480+4+3, unknown, "only loads may be unknown: those of the last 40 minutes, the four newest at least, and the three newest for jumps")
	unchanged()
	for i := 0; i < len(data); i += apart { // each byte matters: one that differs is refused, or is another past
		bad := append([]byte{}, data...)
		bad[i] = ^bad[i]
		var other pipeline.Past
		if other.UnmarshalBinary(bad) == nil {
			require.True(t, bytes.Equal(bad, checkpoint(t, &other)), "the byte %d does not count", i)
		}
	}
}

// TestCheckpointOfTooLargeLoads: what is not finite is not written.
func TestCheckpointOfTooLargeLoads(t *testing.T) {
	l := newLearner(4)
	past := pipeline.NewPast(&l.params)
	var m pipeline.Memory
	for t := range int64(10) {
		past.Add(1_000_000+t, math.MaxFloat64, &m, &l.params)
	}
	_, err := past.MarshalBinary()
	assert.ErrorContains(t, err, "not finite")
}

// TestPastFits: a past is of one kind of load alone.
func TestPastFits(t *testing.T) {
	params := adaptive()
	past := restored(t, checkpoint(t, pipeline.NewPast(&params)))
	for name, test := range map[string]struct {
		change func(*pipeline.Params)
		fits   bool
	}{
		"same":      {func(*pipeline.Params) {}, true},
		"threshold": {func(p *pipeline.Params) { p.Threshold /= 2 }, true},
		"model":     {func(p *pipeline.Params) { p.Model.Kind = pipeline.Quadratic }, false},
		"interval":  {func(p *pipeline.Params) { p.Interval = 10 * time.Second }, false},
		"whole":     {func(p *pipeline.Params) { p.Whole = true }, false},
		"method":    {func(p *pipeline.Params) { p.Method = pipeline.Holt }, false},
		"counted":   {func(p *pipeline.Params) { p.Counted = true }, false},
	} {
		other := params
		test.change(&other)
		assert.Equal(t, test.fits, past.Fits(&other), name)
	}
	assert.False(t, (*pipeline.Past)(nil).Fits(&params))
}

// FuzzCheckpoint reads any data: it is refused, or it is a checkpoint that is written again to the same bytes, and learning and
// forecasts go on from it without a panic.
func FuzzCheckpoint(f *testing.F) {
	params := adaptive()
	for seed := range uint64(5) {
		l := newLearner(seed)
		l.params = params
		past := pipeline.NewPast(&l.params)
		l.learn(0, time.Duration(seed*seed)*time.Hour, past)
		f.Add(checkpoint(f, past))
	}
	f.Add([]byte{})
	f.Add([]byte{pipeline.CheckpointVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		var past pipeline.Past
		if err := past.UnmarshalBinary(data); err != nil {
			require.Equal(t, pipeline.Past{}, past)
			return
		}
		require.LessOrEqual(t, len(data), pipeline.MaxCheckpoint)
		require.True(t, bytes.Equal(data, checkpoint(t, &past)))
		l := newLearner(uint64(len(data)))
		l.params = params
		newest := time.Duration(max(0, min(past.Newest(), math.MaxInt64/2_000_000))) * time.Millisecond
		in := l.window(newest + 10*time.Second)
		in.Past = &past
		p, err := pipeline.New(params)
		require.NoError(t, err)
		if got, err := p.Run(in); err == nil {
			checkForecast(t, params, in, got)
		}
		l.learn(newest, newest+20*time.Minute, &past)
	})
}

// What is counted of a load of weeks, with a pause, is what a checkpoint of it has.
func TestKnownOfACheckpointOfWeeks(t *testing.T) {
	p := learningParams()
	p.Interval = 5 * time.Minute
	p.Window = time.Hour
	past := pipeline.NewPast(&p)
	var m pipeline.Memory
	for s := int64(0); s < 16*ofDay; s += 300 {
		if s < 5*ofDay || s >= 7*ofDay {
			past.Add((midnight+s)*1000, 3+math.Sin(float64(s)), &m, &p)
		}
		if s%ofDay == 0 {
			data, err := past.MarshalBinary()
			require.NoError(t, err)
			var read pipeline.Past
			require.NoError(t, read.UnmarshalBinary(data))
			require.Equal(t, past.Known(), read.Known(), "day %d", s/ofDay)
		}
	}
	assert.InDelta(t, 7*24, past.Known().Hours(), 1)
}
