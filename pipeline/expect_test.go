package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// atChance is true for one hour of three.
func atChance(hour int64) bool { return newFleets(uint64(hour)).Span(0, 2) == 0 }

// inFourMinutes is of pods that start in minutes.
func inFourMinutes(past *pipeline.Learned, s int64, load secondly) pipeline.Input {
	in := inputOf(past, s, load)
	in.StartupTime = 225 * time.Second
	return in
}

// If no margin could keep lateness to the requested share, jumps that occur in some hours are planned for as often as
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

// A load that becomes nearly four times as much in the time that pods take, and six times in all,
// is expected, each hour.
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

// lateInFourMinutes plays a load until a day, for pods that take four minutes. It returns the share
// of the time from another day on in which too few pods had been ordered, and the load that the
// ordered ones hold, on average.
func lateInFourMinutes(t *testing.T, p pipeline.Params, from, to int64, load secondly) (late, ordered float64) {
	t.Helper()
	past := pipeline.NewLearned(&p)
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
