package learn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// minuteMeans are those of a load from one second to another.
func minuteMeans(from, to int64, load secondly) []Minute {
	var means []Minute
	for s := from; s < to; s += 60 {
		sum := 0.0
		for k := s; k < s+60; k++ {
			sum += load(k) / 60
		}
		means = append(means, Minute{Mean: sum})
	}
	return means
}

// filled is a past that knows a load from one second to another by its means of minutes.
func filled(p Options, from, to int64, load secondly) *Learned {
	past := NewLearned(p)
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
			if since -= seriestest.NewRandom(seed^uint64(s/ofDay)).Span(-8, 8); 0 <= since && since < 240 {
				level *= 4
			}
		}
		return level
	})
}

// Filling in means of minutes gives the same history as learning the same load directly: the load
// of a day and a week ago to the digits that are kept, and the minutes in which it jumps, to ten
// seconds and a tenth of the height.
func TestFilledIsAsLearned(t *testing.T) {
	p := learningParams()
	p.Interval = 5 * time.Second
	jumps := []int64{3*3600 + 20, 10*3600 + 37, 17*3600 + 3, 20*3600 + 48}
	load := busyDays(21, jumps...)
	const days = 3
	live := NewLearned(p)
	for s := int64(0); s < days*ofDay; s += 5 {
		mean := 0.0
		for k := s; k < s+5; k++ {
			mean += load(k) / 5
		}
		live.Add((midnight+s)*1000, mean, p)
	}
	past := filled(p, 0, days*ofDay, load)
	require.InDelta(t, live.Known().Hours(), past.Known().Hours(), 0.2)
	for s := int64(600); s < days*ofDay-600; s += 137 {
		minute, five := live.recalled((midnight + s) * 1000)
		gotMinute, gotFive := past.recalled((midnight + s) * 1000)
		if s > (days-1)*ofDay {
			require.InEpsilon(t, minute, gotMinute, 0.01, "second %d", s)
		}
		require.InEpsilon(t, five, gotFive, 0.01, "second %d", s)
	}
	at := func(s int64) int64 { return (midnight + s) * 1000 }
	for _, begin := range jumps {
		begins := days*ofDay + begin
		require.InEpsilon(t, live.due(at(begins), at(begins)), past.due(at(begins), at(begins)), 0.1, "at %d", begin)
		for _, early := range []int64{-120, -45, 60, 120} {
			require.Zero(t, past.due(at(begins+early), at(begins+early)), "%d after %d", early, begin)
		}
	}
	require.Zero(t, past.due(at(days*ofDay+12*3600), at(days*ofDay+13*3600)))
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
		past := NewLearned(p)
		follow(past, p, c.began, c.ended, calm)
		margins, weights := past.margins()
		once := func(past *Learned) *Learned {
			past = past.Clone()
			past.Fill(midnight*1000, minuteMeans(0, c.history, jumps))
			return past
		}
		got := once(past)
		gotMargins, gotWeights := got.margins()
		require.Equal(t, margins, gotMargins, name)
		require.Equal(t, weights, gotWeights, name)
		ten := 5*ofDay + 10*3600 + 150
		minute, _ := got.recalled((midnight + ten) * 1000)
		require.InDelta(t, 2.0, minute, 0.01, "%s: the load did not jump where it was learned", name)
		_, five := got.recalled((midnight + ten - ofDay) * 1000)
		require.Greater(t, five, 4.0, "%s: it did a day before", name)
		// It jumped on days 0 to 4, and not on day 5. After some days that were not seen fewer are left.
		due := func(past *Learned, day int64) float64 {
			at := (midnight + day*ofDay + 10*3600 + 140) * 1000
			return past.due(at, at)
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

// TestGapsOfHistory: what is not known is unknown, and no load of zero nor a jump after one.
func TestGapsOfHistory(t *testing.T) {
	p := learningParams()
	past := NewLearned(p)
	means := minuteMeans(0, 7*ofDay, daily(func(int64) bool { return false }))
	for day := range 7 {
		for m := 600; m < 660; m++ {
			means[day*1440+m].Mean = []float64{math.NaN(), math.Inf(1), -3}[day%3]
		}
	}
	past.Fill(midnight*1000, means)
	for m := int64(602); m < 658; m++ {
		minute, five := past.recalled((midnight + 6*ofDay + m*60) * 1000)
		require.True(t, math.IsNaN(minute), "minute %d: %v", m, minute)
		require.True(t, math.IsNaN(five) || m < 605 || m > 655, "minute %d: %v", m, five)
	}
	require.Zero(t, past.due((midnight+7*ofDay)*1000, (midnight+8*ofDay)*1000))
	assert.InDelta(t, 7*23, past.Known().Hours(), 0.2)
}

// TestFilledWeeksAreTheNewest: of a longer history only the end counts, which is kept for a week.
func TestFilledWeeksAreTheNewest(t *testing.T) {
	p := learningParams()
	load := busyDays(23)
	require.Equal(t, checkpoint(t, filled(p, ofDay, 9*ofDay, load)), checkpoint(t, filled(p, -20*ofDay, 9*ofDay, load)))
}

// TestFillOfRareReadings: jumps of loads that are read once a minute are not found as they come,
// and so not in their history either.
func TestFillOfRareReadings(t *testing.T) {
	p := learningParams()
	p.Interval = time.Minute
	past := filled(p, 0, 7*ofDay, daily(func(int64) bool { return true }))
	require.Zero(t, past.due((midnight+7*ofDay)*1000, (midnight+8*ofDay)*1000))
	_, five := past.recalled((midnight + 6*ofDay) * 1000)
	require.InDelta(t, 2, five, 0.01)
}

// TestClippedMinutes: a load that was at least so high is unknown, and a jump to that height.
func TestClippedMinutes(t *testing.T) {
	p := learningParams()
	means := minuteMeans(0, 7*ofDay, daily(func(int64) bool { return true }))
	for i := range means {
		means[i].Clipped = means[i].Mean > 9
	}
	past := NewLearned(p)
	past.Fill(midnight*1000, means)
	ten := (midnight + 7*ofDay + 10*3600 + 140) * 1000
	require.InDelta(t, 10, past.due(ten, ten), 0.5)
	minute, _ := past.recalled(ten - 86_400_000 + 60_000)
	require.True(t, math.IsNaN(minute), "%v", minute)
}
