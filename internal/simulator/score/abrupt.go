package score

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/simulator"
)

// Abrupt is time above a threshold for which the load rose too fast for pods to be ordered for it: whatever has as many pods has
// about as much of it, unless it knows when the load will jump.
type Abrupt struct {
	MomentaryMinutes float64 // bursts of seconds: the pods suffice on average of the 15 s before and of the 15 s after
	SuddenMinutes    float64 // after a jump, until pods that were ordered then are ready
}

const (
	settled   = 15 // s, of which the load is the mean
	jumpsIn   = 60 // s
	jumpTimes = 1.5
)

// OfAbrupt finds it in a record. The load jumps where the mean of the next 15 s is at least 1.5 times the highest mean of 15 s within the
// minute before. reaction is the time from a load to pods for it. Of the first minute of a record no jump is known.
func OfAbrupt(r *simulator.Record, threshold float64, reaction time.Duration) Abrupt {
	var a Abrupt
	before := means(r.Seconds)
	after := func(i int) float64 { return before[min(i+settled-1, len(before)-1)] }
	for i, s := range r.Seconds {
		if !above(s, threshold) {
			continue
		}
		switch load := max(before[i], after(i)); {
		case load <= threshold*float64(s.Ready)+rounding:
			a.MomentaryMinutes += 1. / 60
		case jumped(before, after, i, int(reaction/time.Second), load):
			a.SuddenMinutes += 1. / 60
		}
	}
	return a
}

// jumped reports whether the load has jumped within the seconds up to i, and not fallen back since.
func jumped(before []float64, after func(int) float64, i, seconds int, load float64) bool {
	for j := i; j > max(i-seconds, jumpsIn); j-- {
		if from := jumpTimes * highest(before[j-jumpsIn:j]); after(j) >= from && after(j) > 0 && load >= from {
			return true
		}
	}
	return false
}

// means are those of the load until the end of each second.
func means(seconds []simulator.Second) []float64 {
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

func highest(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
