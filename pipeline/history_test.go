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
func filled(p pipeline.Params, from, to int64, load secondly) *pipeline.Past {
	past := pipeline.NewPast(&p)
	past.Fill((midnight+from)*1000, minuteMeans(from, to, load))
	return past
}

// busyDays vary over the day, with noise, and jump to four times as much for four minutes at the seconds of the day that are given, a few
// seconds earlier or later each day.
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

// TestFilledIsAsLearned: what means of minutes tell is what a past knows that saw the same load as it came: the load of a day and a week
// ago to the digits that are kept, and the minutes in which it jumps, to ten seconds and a tenth of the height.
func TestFilledIsAsLearned(t *testing.T) {
	p := learningParams()
	p.Interval = 5 * time.Second
	jumps := []int64{3*3600 + 20, 10*3600 + 37, 17*3600 + 3, 20*3600 + 48}
	load := busyDays(21, jumps...)
	const days = 3
	live := pipeline.NewPast(&p)
	var m pipeline.Memory
	for s := int64(0); s < days*ofDay; s += 5 {
		mean := 0.0
		for k := s; k < s+5; k++ {
			mean += load(k) / 5
		}
		live.Add((midnight+s)*1000, mean, &m, &p)
	}
	past := filled(p, 0, days*ofDay, load)
	require.InDelta(t, live.Known().Hours(), past.Known().Hours(), 0.2)
	for s := int64(600); s < days*ofDay-600; s += 137 {
		minute, five := live.Recalled((midnight + s) * 1000)
		gotMinute, gotFive := past.Recalled((midnight + s) * 1000)
		if s > (days-1)*ofDay {
			require.InEpsilon(t, minute, gotMinute, 0.01, "second %d", s)
		}
		require.InEpsilon(t, five, gotFive, 0.01, "second %d", s)
	}
	at := func(s int64) int64 { return (midnight + s) * 1000 }
	for _, begin := range jumps {
		begins := days*ofDay + begin
		require.InEpsilon(t, live.Due(at(begins), at(begins)), past.Due(at(begins), at(begins)), 0.1, "at %d", begin)
		for _, early := range []int64{-120, -45, 60, 120} {
			require.Zero(t, past.Due(at(begins+early), at(begins+early)), "%d after %d", early, begin)
		}
	}
	require.Zero(t, past.Due(at(days*ofDay+12*3600), at(days*ofDay+13*3600)))
}

// TestLearnedStays: what was learned as it came stays as it is, of the load as well as of jumps and of how it goes on.
func TestLearnedStays(t *testing.T) {
	p := learningParams()
	jumps := daily(func(int64) bool { return true })
	calm := daily(func(int64) bool { return false })
	for name, c := range map[string]struct {
		began, ended int64 // what was learned
		history      int64 // until when
	}{
		"while it was learned":     {5*ofDay + 9*3600, 5*ofDay + 12*3600, 5*ofDay + 11*3600},
		"until it was learned":     {5*ofDay + 9*3600, 5*ofDay + 12*3600, 5*ofDay + 9*3600},
		"until hours after it was": {5*ofDay + 9*3600, 5*ofDay + 12*3600, 5*ofDay + 20*3600},
	} {
		past := pipeline.NewPast(&p)
		follow(past, p, c.began, c.ended, calm)
		margins, weights := past.Margins()
		once := func(past *pipeline.Past) *pipeline.Past {
			past = past.Clone()
			past.Fill(midnight*1000, minuteMeans(0, c.history, jumps))
			return past
		}
		got := once(past)
		gotMargins, gotWeights := got.Margins()
		require.Equal(t, margins, gotMargins, name)
		require.Equal(t, weights, gotWeights, name)
		ten := 5*ofDay + 10*3600 + 150
		minute, _ := got.Recalled((midnight + ten) * 1000)
		require.InDelta(t, 2.0, minute, 0.01, "%s: the load did not jump where it was learned", name)
		_, five := got.Recalled((midnight + ten - ofDay) * 1000)
		require.Greater(t, five, 4.0, "%s: it did a day before", name)
		// It jumped on days 0 to 4, and not on day 5. After some days that were not seen fewer are left.
		due := func(past *pipeline.Past, day int64) float64 {
			at := (midnight + day*ofDay + 10*3600 + 140) * 1000
			return past.Due(at, at)
		}
		require.InDelta(t, 10.0, due(got, 6), 0.5, name)
		later := got.Clone()
		follow(later, p, 9*ofDay, 9*ofDay+3600, calm)
		require.InDelta(t, 10.0, due(later, 9), 0.5, "%s: days 2 to 4", name)
		follow(got, p, 10*ofDay, 10*ofDay+3600, calm)
		require.Zero(t, due(got, 10), "%s: days 3 and 4", name)

		require.Equal(t, checkpoint(t, once(past)), checkpoint(t, once(once(past))), "%s: again adds nothing", name)
		require.Equal(t, checkpoint(t, once(past)), checkpoint(t, restored(t, checkpoint(t, once(past)))), name)
	}
}

// TestFillGoesOn: a past of which nothing was learned goes on from its history, and forecasts as one without until it has learned.
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

// TestGapsOfHistory: what is not known is unknown, and no load of zero nor a jump after one.
func TestGapsOfHistory(t *testing.T) {
	p := learningParams()
	past := pipeline.NewPast(&p)
	means := minuteMeans(0, 7*ofDay, daily(func(int64) bool { return false }))
	for day := range 7 {
		for m := 600; m < 660; m++ {
			means[day*1440+m].Mean = []float64{math.NaN(), math.Inf(1), -3}[day%3]
		}
	}
	past.Fill(midnight*1000, means)
	for m := int64(602); m < 658; m++ {
		minute, five := past.Recalled((midnight + 6*ofDay + m*60) * 1000)
		require.True(t, math.IsNaN(minute), "minute %d: %v", m, minute)
		require.True(t, math.IsNaN(five) || m < 605 || m > 655, "minute %d: %v", m, five)
	}
	require.Zero(t, past.Due((midnight+7*ofDay)*1000, (midnight+8*ofDay)*1000))
	assert.InDelta(t, 7*23, past.Known().Hours(), 0.2)
}

// TestFillIsBounded: whatever the history, a past stays one that a checkpoint can have and that forecasts.
func TestFillIsBounded(t *testing.T) {
	for seed := range uint64(40) {
		r := newFleets(seed)
		p := learningParams()
		p.Interval = pick(r, time.Second, 5*time.Second, time.Minute)
		p.StaleAfter, p.Window = 5*time.Minute, 20*time.Minute
		load := noisy(seed, bursts(seed, 900))
		past := pipeline.NewPast(&p)
		if r.Chance(0.7) {
			follow(past, p, ofDay, ofDay+r.Span(1, 3*3600), load)
		}
		if r.Chance(0.3) {
			past = past.Shifted(time.Duration(r.Span(-3, 9)) * time.Hour)
		}
		for range 3 {
			means := make([]pipeline.Minute, r.Span(0, 15_000))
			for i := range means {
				means[i].Mean = pick(r, load(int64(i)*60), load(int64(i)*60), load(int64(i)*60), math.NaN(), math.Inf(-1), -1, 0, 1e300)
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
			for _, x := range []float64{f.Total, f.Damped, f.Required} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "seed %d: %s", seed, fmt.Sprintf("%+v", f))
			}
		}
	}
}

// TestFilledWeeksAreTheNewest: of a longer history only the end counts, which is kept for a week.
func TestFilledWeeksAreTheNewest(t *testing.T) {
	p := learningParams()
	load := busyDays(23)
	require.Equal(t, checkpoint(t, filled(p, ofDay, 9*ofDay, load)), checkpoint(t, filled(p, -20*ofDay, 9*ofDay, load)))
}

// TestFillOfRareReadings: jumps of loads that are read once a minute are not found as they come, and so not in their history either.
func TestFillOfRareReadings(t *testing.T) {
	p := learningParams()
	p.Interval = time.Minute
	past := filled(p, 0, 7*ofDay, daily(func(int64) bool { return true }))
	require.Zero(t, past.Due((midnight+7*ofDay)*1000, (midnight+8*ofDay)*1000))
	_, five := past.Recalled((midnight + 6*ofDay) * 1000)
	require.InDelta(t, 2, five, 0.01)
}

// TestClippedMinutes: a load that was at least so high is unknown, and a jump to that height.
func TestClippedMinutes(t *testing.T) {
	p := learningParams()
	means := minuteMeans(0, 7*ofDay, daily(func(int64) bool { return true }))
	for i := range means {
		means[i].Clipped = means[i].Mean > 9
	}
	past := pipeline.NewPast(&p)
	past.Fill(midnight*1000, means)
	ten := (midnight + 7*ofDay + 10*3600 + 140) * 1000
	require.InDelta(t, 10, past.Due(ten, ten), 0.5)
	minute, _ := past.Recalled(ten - 86_400_000 + 60_000)
	require.True(t, math.IsNaN(minute), "%v", minute)
}
