package score

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Abrupt is time above a threshold for which the load rose too fast for pods to be ordered for it:
// whatever has as many pods has about as much of it, unless it knows when the load will jump.
type Abrupt struct {
	MomentaryMinutes float64 // bursts of seconds: the pods suffice on average of the 15 s before and of the 15 s after
	SuddenMinutes    float64 // after a jump, until pods that were ordered then are ready
}

// Plus returns the figures of two runs together.
func (a Abrupt) Plus(o Abrupt) Abrupt {
	return Abrupt{a.MomentaryMinutes + o.MomentaryMinutes, a.SuddenMinutes + o.SuddenMinutes}
}

// Per returns the mean of figures that are the sum of runs with so many seeds.
func (a Abrupt) Per(seeds int) Abrupt {
	return Abrupt{a.MomentaryMinutes / float64(seeds), a.SuddenMinutes / float64(seeds)}
}

const (
	settled   = 15 // s, of which the load is the mean
	jumpsIn   = 60 // s
	jumpTimes = 1.5
)

// OfAbrupt finds it in a record. The load jumps where the mean of the next 15 s is at least 1.5
// times the highest mean of 15 s within the minute before. reaction is the time from a load to pods
// for it. Of the first minute of a record no jump is known.
func OfAbrupt(r *lab.Record, threshold float64, reaction time.Duration) Abrupt {
	var a Abrupt
	before := means(r.Seconds)
	after := func(i int) float64 { return before[min(i+settled-1, len(before)-1)] }
	jumps := jumpsOf(before, after)
	ordered := int(reaction / time.Second)
	for i, s := range r.Seconds {
		if !above(s, threshold) {
			continue
		}
		switch load := max(before[i], after(i)); {
		case load <= threshold*float64(s.Ready)+rounding:
			a.MomentaryMinutes += 1. / 60
		case load >= slices.Min(jumps[max(0, i-ordered+1):i+1]): // and has not fallen back since
			a.SuddenMinutes += 1. / 60
		}
	}
	return a
}

// jumpsOf returns the load from which on it is a jump, for each second in which it jumps, and
// infinity for the others.
func jumpsOf(before []float64, after func(int) float64) []float64 {
	out := make([]float64, len(before))
	for i := range out {
		out[i] = math.Inf(1)
		if i <= jumpsIn {
			continue
		}
		if from := jumpTimes * slices.Max(before[i-jumpsIn:i]); after(i) >= from && after(i) > 0 {
			out[i] = from
		}
	}
	return out
}

// means are those of the load until the end of each second.
func means(seconds []lab.Second) []float64 {
	out := make([]float64, len(seconds))
	sum := 0.0
	for i, s := range seconds {
		sum += s.Offered
		if i >= settled {
			sum -= seconds[i-settled].Offered
		}
		out[i] = sum / float64(min(i+1, settled))
	}
	return out
}
