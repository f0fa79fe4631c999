package pipeline_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// minuteMeans are those of a load from one second to another.
func minuteMeans(from, to int64, load secondly) []pipeline.Minute {
	var means []pipeline.Minute
	for s := from; s < to; s += 60 {
		sum := 0.0
		for k := s; k < s+60; k++ {
			sum += load(k) / 60
		}
		means = append(means, pipeline.Minute{Mean: sum})
	}
	return means
}

// filled is a past that knows a load from one second to another by its means of minutes.
func filled(p pipeline.Params, from, to int64, load secondly) *pipeline.Learned {
	past := pipeline.NewLearned(&p)
	past.Fill((midnight+from)*1000, minuteMeans(from, to, load))
	return past
}

// busyDays vary over the day, with noise, and jump to four times as much for four minutes at the
// seconds of the day that are given, a few seconds earlier or later each day.
func busyDays(seed uint64, at ...int64) secondly {
	return noisy(seed, func(s int64) float64 {
		level := 20 + 10*math.Sin(2*math.Pi*float64(s)/float64(ofDay))
		for _, begin := range at {
			since := s%ofDay - begin
			if since < -8 || since >= 248 {
				continue
			}
			if since -= newFleets(seed^uint64(s/ofDay)).Span(-8, 8); 0 <= since && since < 240 {
				level *= 4
			}
		}
		return level
	})
}

// TestFillGoesOn: a past of which nothing was learned goes on from its history, and forecasts as
// one without until it has learned.
func TestFillGoesOn(t *testing.T) {
	p := learningParams()
	load := busyDays(22, 12*3600)
	past := filled(p, 0, 3*ofDay, load)
	require.Equal(t, (midnight+3*ofDay)*1000-1, past.Newest())
	assert.InDelta(t, 72, past.Known().Hours(), 0.2)
	require.Equal(t, foretell(t, p, nil, 3*ofDay+300, load), foretell(t, p, past, 3*ofDay+300, load))
	follow(past, p, 3*ofDay-600, 3*ofDay, load)
	require.Equal(t, checkpoint(t, filled(p, 0, 3*ofDay, load)), checkpoint(t, past), "the end of the history is known")
	follow(past, p, 3*ofDay, 3*ofDay+900, load)
	assert.True(t, foretell(t, p, past, 3*ofDay+900, load).Total != foretell(t, p, nil, 3*ofDay+900, load).Total)
}

// TestFillIsBounded: whatever the history, a past stays one that a checkpoint can have and that forecasts.
func TestFillIsBounded(t *testing.T) {
	for seed := range uint64(40) {
		r := newFleets(seed)
		p := learningParams()
		p.Interval = pick(r, time.Second, 5*time.Second, time.Minute)
		p.StaleAfter, p.Window = 5*time.Minute, 20*time.Minute
		load := noisy(seed, bursts(seed, 900))
		past := pipeline.NewLearned(&p)
		if r.Chance(0.7) {
			follow(past, p, ofDay, ofDay+r.Span(1, 3*3600), load)
		}
		if r.Chance(0.3) {
			past = past.Shifted(time.Duration(r.Span(-3, 9)) * time.Hour)
		}
		for range 3 {
			means := make([]pipeline.Minute, r.Span(0, 15_000))
			for i := range means {
				means[i].Mean = pick(r, load(int64(i)*60), load(int64(i)*60), load(int64(i)*60),
					math.NaN(), math.Inf(-1), -1, 0, 1e300)
				means[i].Clipped = r.Chance(0.1)
			}
			begin := pick(r, midnight*1000, (midnight+r.Span(-9*ofDay, 9*ofDay)/60*60)*1000, 0, -1, math.MaxInt64, math.MinInt64)
			past.Fill(begin, means)
			past = restored(t, checkpoint(t, past))
			require.LessOrEqual(t, past.Known(), 8*24*time.Hour, "seed %d", seed)
			at := past.Newest()/1000 - midnight + r.Span(0, ofDay)
			if math.Abs(float64(at)) > 1e9 {
				at = 0
			}
			follow(past, p, at, at+300, load)
			f := foretell(t, p, past, at+301, load)
			for _, x := range []float64{f.Total, f.PlannedLoad, f.Required} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "seed %d: %s", seed, fmt.Sprintf("%+v", f))
			}
		}
	}
}
