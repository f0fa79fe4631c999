package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// hourly jumps for five minutes in the 32nd minute of the hours that it is told to.
func hourly(on func(hour int64) bool) secondly {
	return func(s int64) float64 {
		began := s%3600 - (32*60 + 20)
		if 0 <= began && began < 300 && on(s/3600) {
			return 10
		}
		return 2
	}
}

// atChance is true for one hour of three.
func atChance(hour int64) bool { return newFleets(uint64(hour)).Span(0, 2) == 0 }

// inFourMinutes is of pods that start in minutes.
func inFourMinutes(past *pipeline.Past, s int64, load secondly) pipeline.Input {
	in := inputOf(past, s, load)
	in.StartupTime = 225 * time.Second
	return in
}

// A jump in a minute of the hour, which comes in some hours, is known by its share of them.
func TestJumpsOfSomeHoursAreKnown(t *testing.T) {
	p := learningParams()
	past := pipeline.NewPast(&p)
	hourly := hourly(func(hour int64) bool { return hour%4 == 0 })
	expected := func(s int64) (share, height float64) {
		at := (midnight + s) * 1000
		return past.Hourly(at, at+240_000)
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

	each := pipeline.NewPast(&p)
	followMornings(each, p, 0, 4, daily(func(int64) bool { return true }))
	share, _ = each.Hourly((midnight+4*ofDay+2*60)*1000, (midnight+4*ofDay+3*60)*1000)
	assert.Zero(t, share, "what comes at ten each day does not come in other hours")

	young := pipeline.NewPast(&p)
	follow(young, p, 0, 5*3600, hourly)
	share, _ = young.Hourly((midnight+5*3600+before)*1000, (midnight+5*3600+before+240)*1000)
	assert.Zero(t, share, "two jumps may be chance")
}

// Where a margin could not keep what is late to the share that was asked for, jumps that come in some hours are planned for, as often as
// that takes.
func TestJumpsOfSomeHoursKeepLateness(t *testing.T) {
	testJumpsOfSomeHours(t, 0.01)
	p := learningParams()
	p.Lateness = 0.2
	late, ordered := lateInFourMinutes(t, p, 1, 3, noisy(3, hourly(atChance)))
	assert.Less(t, ordered, 3., "nothing is ordered for jumps")
	assert.Greater(t, late, 0.02, "they are all late")
}

func testJumpsOfSomeHours(t *testing.T, lateness float64) {
	p := learningParams()
	p.Lateness = lateness
	late, _ := lateInFourMinutes(t, p, 2, 6, noisy(3, hourly(atChance)))
	assert.InEpsilon(t, lateness, late, 0.25)
}

// A load that becomes nearly four times as much in the time that pods take, and six times in all, is expected, each hour.
func TestSteepRisesKeepLateness(t *testing.T) { testSteepRises(t, 4) }

func testSteepRises(t *testing.T, days int64) {
	p := learningParams()
	p.Lateness = 0.01
	late, _ := lateInFourMinutes(t, p, 2, days, noisy(4, func(s int64) float64 {
		if grown := float64(s%3600)/60 - 30; 0 <= grown && grown < 20 {
			return 2 * math.Min(6, math.Pow(1.4, grown))
		}
		return 2
	}))
	assert.InEpsilon(t, p.Lateness, late, 0.25)
}

// lateInFourMinutes plays a load until a day, for pods that take four minutes. It returns the share of the time from another day on in
// which too few pods had been ordered, and the load that the ordered ones hold, on average.
func lateInFourMinutes(t *testing.T, p pipeline.Params, from, to int64, load secondly) (late, ordered float64) {
	t.Helper()
	past := pipeline.NewPast(&p)
	follow(past, p, 0, from*ofDay, load)
	judged, target, forecast := 0.0, 1, runs(t, p)
	for s := from * ofDay; s < to*ofDay; s += 15 {
		follow(past, p, s-15, s, load)
		in := inFourMinutes(past, s, load)
		in.Target = target
		f := forecast(in)
		target = f.Decision.Desired
		rate := 0.0
		for k := s + 231; k <= s+250; k++ {
			rate += load(k) / 20
		}
		judged++
		ordered += f.Holds
		if rate > f.Holds {
			late++
		}
	}
	return late / judged, ordered / judged
}

// A load that pods could not show whole was late for certain if it showed too much, and otherwise it is not known.
func TestClippedLoadsMayBeLate(t *testing.T) {
	p := learningParams()
	load := noisy(6, func(int64) float64 { return 3 })
	past := pipeline.NewPast(&p)
	follow(past, p, 0, ofDay/4+1, load) // the look of then is over
	clipped := func(shown float64) *pipeline.Past {
		out := past.Clone()
		var m pipeline.Memory
		for s := ofDay/4 + 1; s < ofDay/4+120; s++ {
			out.AddClipped((midnight+s)*1000, shown, &m, &p)
		}
		return out
	}
	was, weights := past.Margins()
	for i, margin := range was {
		high, learned := clipped(20).Margins()
		assert.Greater(t, high[i], margin+0.05, "horizon %d", i)
		assert.Equal(t, weights, learned, "nothing is learned of how the load goes on")
		low, _ := clipped(3).Margins()
		assert.Equal(t, margin, low[i], "horizon %d", i)
	}
}
