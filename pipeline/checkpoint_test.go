package pipeline_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// learner adds loads to a past, as they come.
type learner struct {
	seriestest.Wandering
	params pipeline.Params
}

// newLearner returns parameters and loads of a seed.
func newLearner(seed uint64) *learner {
	l := &learner{seriestest.NewWandering(seed), adaptive()}
	l.params.Interval = seriestest.Pick(l, time.Second, 5*time.Second, 7*time.Second, 15*time.Second, time.Minute)
	l.params.StaleAfter = max(l.params.StaleAfter, 2*l.params.Interval)
	l.params.Whole = l.Chance(0.5)
	if !l.params.Whole {
		l.params.Model = seriestest.Pick(l, pipeline.Model{Kind: pipeline.Linear}, pipeline.Model{Kind: pipeline.Quadratic},
			pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.1})
	}
	l.params.Lateness = seriestest.Pick(l, 0, 0.01, 0.1)
	return l
}

// learn adds loads from one time to another to some pasts alike.
func (l *learner) learn(from, to time.Duration, pasts ...*pipeline.Learned) {
	l.Play(from, to, l.params.Interval, func(t int64, load float64) {
		for _, p := range pasts {
			p.Add(t, load, l.params.LearnOptions())
		}
	})
}

func checkpoint(t testing.TB, p *pipeline.Learned) []byte {
	t.Helper()
	data, err := p.MarshalBinary()
	require.NoError(t, err)
	return data
}

func restored(t testing.TB, data []byte) *pipeline.Learned {
	t.Helper()
	var p pipeline.Learned
	require.NoError(t, p.UnmarshalBinary(data))
	return &p
}

// TestCheckpointGoesOn: a past that is read from a checkpoint forecasts and learns bit for bit as
// the one that was written, after some hours and after more than a week.
func TestCheckpointGoesOn(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLearner(seed)
			past := pipeline.NewLearned(&l.params)
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
			require.True(t, again.Fits(l.params.LearnOptions()))
			require.Equal(t, past.Known(), again.Known())

			const more = 3 * time.Hour
			for end := written + time.Minute; end < written+more; end += 17 * time.Minute {
				l.learn(end-17*time.Minute, end, past, again)
				in := l.window(end)
				in.Learned = past
				forecast := run(t, l.params, in)
				in.Learned = again
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
	in := pipeline.Input{Now: now, Target: 1, Since: math.MinInt64, TargetRose: math.MinInt64,
		StartupTime: 30 * time.Second}
	if l.params.Whole {
		in.Total = samples
	} else {
		in.Instances = []pipeline.Instance{{ID: "a", Start: now - l.params.Window.Milliseconds()*2, Samples: samples}}
	}
	return in
}

// TestCheckpointOfTheForecastItself: the forecast with a past is not the one without, so that equal
// ones show something.
func TestCheckpointOfTheForecastItself(t *testing.T) {
	l := newLearner(1)
	past := pipeline.NewLearned(&l.params)
	l.learn(0, 6*time.Hour, past)
	in := l.window(6 * time.Hour)
	without := run(t, l.params, in)
	in.Learned = restored(t, checkpoint(t, past))
	assert.NotEqual(t, without.Total, run(t, l.params, in).Total)
}

// TestPastFits: a past is of one kind of load alone.
func TestPastFits(t *testing.T) {
	params := adaptive()
	past := restored(t, checkpoint(t, pipeline.NewLearned(&params)))
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
		assert.Equal(t, test.fits, past.Fits(other.LearnOptions()), name)
	}
	assert.False(t, (*pipeline.Learned)(nil).Fits(params.LearnOptions()))
}

// FuzzCheckpoint reads any data: it is refused, or it is a checkpoint that is written again to the
// same bytes, and learning and forecasts go on from it without a panic.
func FuzzCheckpoint(f *testing.F) {
	params := adaptive()
	for seed := range uint64(5) {
		l := newLearner(seed)
		l.params = params
		past := pipeline.NewLearned(&l.params)
		l.learn(0, time.Duration(seed*seed)*time.Hour, past)
		f.Add(checkpoint(f, past))
	}
	f.Add([]byte{})
	f.Add([]byte{pipeline.CheckpointVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		var past pipeline.Learned
		if err := past.UnmarshalBinary(data); err != nil {
			require.Equal(t, pipeline.Learned{}, past)
			return
		}
		require.LessOrEqual(t, len(data), pipeline.MaxCheckpoint)
		require.True(t, bytes.Equal(data, checkpoint(t, &past)))
		l := newLearner(uint64(len(data)))
		l.params = params
		newest := time.Duration(max(0, min(past.Newest(), math.MaxInt64/2_000_000))) * time.Millisecond
		in := l.window(newest + 10*time.Second)
		in.Learned = &past
		p, err := pipeline.New(params)
		require.NoError(t, err)
		if got, err := p.Run(in); err == nil {
			checkForecast(t, params, in, got)
		}
		l.learn(newest, newest+20*time.Minute, &past)
	})
}
