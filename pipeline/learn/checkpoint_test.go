package learn

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/series"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// learner adds loads to a past, as they come.
type learner struct {
	seriestest.Wandering
	params Options
}

// newLearner returns options and loads of a seed.
func newLearner(seed uint64) *learner {
	l := &learner{seriestest.NewWandering(seed), learningParams()}
	l.params.Interval = seriestest.Pick(l, time.Second, 5*time.Second, 7*time.Second, 15*time.Second, time.Minute)
	l.params.Whole = l.Chance(0.5)
	if !l.params.Whole {
		l.params.Model = seriestest.Pick(l, series.Model{Kind: series.Linear}, series.Model{Kind: series.Quadratic},
			series.Model{Kind: series.Overhead, Baseline: 0.1})
	}
	l.params.Lateness = seriestest.Pick(l, 0, 0.01, 0.1)
	return l
}

// learn adds loads from one time to another.
func (l *learner) learn(from, to time.Duration, past *Learned) {
	l.Play(from, to, l.params.Interval, func(t int64, load float64) { past.Add(t, load, l.params) })
}

func checkpoint(t testing.TB, p *Learned) []byte {
	t.Helper()
	data, err := p.MarshalBinary()
	require.NoError(t, err)
	return data
}

func restored(t testing.TB, data []byte) *Learned {
	t.Helper()
	var p Learned
	require.NoError(t, p.UnmarshalBinary(data))
	return &p
}

// TestCheckpointSize states how large the smallest and the largest checkpoints are;
// TestCheckpointGoesOn has that of an ordinary load.
func TestCheckpointSize(t *testing.T) {
	p := learningParams()
	assert.Less(t, len(checkpoint(t, NewLearned(p))), 9_600, "of nothing")
	// The largest is of a load that has jumped in each minute of the day: on each of five days in another fifth of them.
	largest := len(checkpoint(t, filledWith(p, 5*24*60, func(minute int64) float64 {
		if minute >= 0 && minute%5 == minute/1440 {
			return 200
		}
		return 100
	})))
	assert.Equal(t, MaxCheckpoint, largest)
}

// filledWith returns a past that was filled with minutes of a load, ten before the first included,
// and has learned the hour after them.
func filledWith(p Options, minutes int64, load func(minute int64) float64) *Learned {
	const before = 10
	past := NewLearned(p)
	var means []Minute
	for minute := int64(-before); minute < minutes; minute++ {
		means = append(means, Minute{Mean: load(minute)})
	}
	past.Fill((midnight-before*60)*1000, means)
	last := means[len(means)-1].Mean
	follow(past, p, minutes*60, minutes*60+3600, func(int64) float64 { return last })
	return past
}

// TestCheckpointRefuses: data that is not a checkpoint is an error, and changes nothing. Of all
// bytes one in seven is changed: fields of two, four and eight bytes each have all of theirs
// changed in some of them.
func TestCheckpointRefuses(t *testing.T) { testCheckpointRefuses(t, 7) }

func testCheckpointRefuses(t *testing.T, apart int) {
	l := newLearner(3)
	past := NewLearned(l.params)
	l.learn(0, 8*time.Hour, past)
	for t := int64(11 * 3_600_000); t < 14*3_600_000; t += 5000 {
		past.Add(t, l.Load(t), l.params)
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
	for _, version := range []byte{0, CheckpointVersion - 1, CheckpointVersion + 1, 255} {
		refuse(append([]byte{version}, data[1:]...), "version %d", version)
	}
	floats := floatsOfCheckpoint(past)
	with := func(at int, v float64) []byte {
		bad := append([]byte{}, data...)
		binary.LittleEndian.PutUint64(bad[at:], math.Float64bits(v))
		return bad
	}
	unknown := 0
	for _, at := range floats {
		refuse(with(at, math.Inf(1)), "infinite at %d", at)
		refuse(with(at, math.Inf(-1)), "minus infinite at %d", at)
		if new(Learned).UnmarshalBinary(with(at, math.NaN())) == nil {
			unknown++
		}
	}
	assert.Equal(t, 480+4+3, unknown,
		"only loads may be unknown: those of the last 40 minutes, the four newest at least, and the three newest for jumps")
	unchanged()
	for i := 0; i < len(data); i += apart { // each byte matters: one that differs is refused, or is another past
		bad := append([]byte{}, data...)
		bad[i] = ^bad[i]
		var other Learned
		if other.UnmarshalBinary(bad) == nil {
			require.True(t, bytes.Equal(bad, checkpoint(t, &other)), "the byte %d does not count", i)
		}
	}
}

// TestCheckpointOfTooLargeLoads: what is not finite is not written.
func TestCheckpointOfTooLargeLoads(t *testing.T) {
	l := newLearner(4)
	past := NewLearned(l.params)
	for t := range int64(10) {
		past.Add(1_000_000+t, math.MaxFloat64, l.params)
	}
	_, err := past.MarshalBinary()
	assert.ErrorContains(t, err, "not finite")
}

// A checkpoint of weeks of load with a pause keeps the counts.
func TestKnownOfACheckpointOfWeeks(t *testing.T) {
	p := learningParams()
	p.Interval = 5 * time.Minute
	past := NewLearned(p)
	for s := int64(0); s < 16*ofDay; s += 300 {
		if s < 5*ofDay || s >= 7*ofDay {
			past.Add((midnight+s)*1000, 3+math.Sin(float64(s)), p)
		}
		if s%ofDay == 0 {
			data, err := past.MarshalBinary()
			require.NoError(t, err)
			var read Learned
			require.NoError(t, read.UnmarshalBinary(data))
			require.Equal(t, past.Known(), read.Known(), "day %d", s/ofDay)
		}
	}
	assert.InDelta(t, 7*24, past.Known().Hours(), 1)
}
