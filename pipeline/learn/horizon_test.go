package learn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// A jump in a minute of the hour, which comes in some hours, is known by its share of them.
func TestJumpsOfSomeHoursAreKnown(t *testing.T) {
	p := learningParams()
	past := NewLearned(p)
	hourly := seriestest.Hourly(func(hour int64) bool { return hour%4 == 0 })
	expected := func(s int64) (share, height float64) {
		at := (midnight + s) * 1000
		return past.hourly(at, at+240_000)
	}
	const before = 30 * 60 // s of an hour
	follow(past, p, 0, 9*3600, hourly)
	share, _ := expected(9*3600 + before)
	assert.InDelta(t, 3./9, share, 0.05, "three jumps tell")
	follow(past, p, 9*3600, ofDay, hourly)
	share, height := expected(ofDay + before)
	assert.InDelta(t, 1./4, share, 0.02)
	assert.InDelta(t, 10, height, 0.5)
	for name, s := range map[string]int64{"too early": ofDay + 27*60, "too late": ofDay + 33*60} {
		share, _ = expected(s)
		assert.Zero(t, share, name)
	}

	each := NewLearned(p)
	followMornings(each, p, 0, 4, daily(func(int64) bool { return true }))
	share, _ = each.hourly((midnight+4*ofDay+2*60)*1000, (midnight+4*ofDay+3*60)*1000)
	assert.Zero(t, share, "what comes at ten each day does not come in other hours")

	young := NewLearned(p)
	follow(young, p, 0, 5*3600, hourly)
	share, _ = young.hourly((midnight+5*3600+before)*1000, (midnight+5*3600+before+240)*1000)
	assert.Zero(t, share, "two jumps may be chance")
}

// A load that pods could not show whole was late for certain if it showed too much, and otherwise it is not known.
func TestClippedLoadsMayBeLate(t *testing.T) {
	p := learningParams()
	load := noisy(6, func(int64) float64 { return 3 })
	past := NewLearned(p)
	follow(past, p, 0, ofDay/4+1, load) // the look of then is over
	clipped := func(shown float64) *Learned {
		out := past.Clone()
		for s := ofDay/4 + 1; s < ofDay/4+120; s++ {
			out.addClipped((midnight+s)*1000, shown, p)
		}
		return out
	}
	was, weights := past.margins()
	for i, margin := range was {
		high, learned := clipped(20).margins()
		assert.Greater(t, high[i], margin+0.05, "horizon %d", i)
		assert.Equal(t, weights, learned, "nothing is learned of how the load goes on")
		low, _ := clipped(3).margins()
		assert.Equal(t, margin, low[i], "horizon %d", i)
	}
}

// The margins that were promised are those of the same loads after a past is shifted.
func TestShiftedPastsPromiseTheSame(t *testing.T) {
	p := learningParams()
	past := NewLearned(p)
	follow(past, p, 0, 2*3600, noisy(7, bursts(7, 900)))
	const by = 5 * 3600
	shifted := past.Shifted(by * time.Second)
	for end := (midnight + 2*3600) * 1000; end > (midnight+2*3600-900)*1000; end -= 15_000 {
		require.Equal(t, past.promised(end), shifted.promised(end-by*1000))
	}
}
