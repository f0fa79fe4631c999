package score

import (
	"time"

	"github.com/foresail/foresail/internal/simulator"
)

// Excess is for how much of the time above the threshold the reason is one that is the same for whatever orders as many pods,
// unless it knows when the load will jump.
type Excess struct {
	MomentaryMinutes float64 // seconds with too much load for the pods, which suffice on average of the 15 s before and of the 15 s after
	SuddenMinutes    float64 // seconds in which the load was half as much again, or more, as when pods were ordered that are ready then
}

const (
	settled = 15  // s, of which the load is the mean
	preface = 60  // s before pods were ordered, of which the highest load is what it jumped from
	jump    = 1.5 // how many times as much as that is a jump
)

// OfExcess tells reasons for time above a threshold apart. reaction is the time from a load to pods for it, at best. What is before
// the record is unknown: in its beginning nothing is sudden.
func OfExcess(r *simulator.Record, threshold float64, reaction time.Duration) Excess {
	var e Excess
	before := means(r.Seconds)
	ordered := int(reaction / time.Second)
	for i, s := range r.Seconds {
		if !above(s, threshold) {
			continue
		}
		load := max(before[i], before[min(i+settled-1, len(before)-1)])
		switch from := i - ordered - preface; {
		case load <= threshold*float64(s.Ready)+rounding:
			e.MomentaryMinutes += 1. / 60
		case from >= 0 && load >= jump*highest(before[from:i-ordered]):
			e.SuddenMinutes += 1. / 60
		}
	}
	return e
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
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
