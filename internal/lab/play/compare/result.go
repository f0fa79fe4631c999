package compare

import (
	"slices"

	"github.com/foresail/foresail/internal/lab/score"
)

// Result is what a comparison came to.
type Result struct {
	Outcomes []Outcome // by profile, in the order asked for
}

// Outcome is what came of one profile.
type Outcome struct {
	Profile string
	Seeds   []uint64     // that every scaler has met
	Scalers []ScalerRuns // in the order asked for
}

// ScalerRuns are the runs of one scaler, in the order of the seeds.
type ScalerRuns struct {
	Name string
	Runs []Run
}

// Values returns a figure of each run.
func (s ScalerRuns) Values(f score.Figure) []float64 {
	values := make([]float64, len(s.Runs))
	for i, run := range s.Runs {
		values[i] = f.Of(run.Figures)
	}
	return values
}

// Interval returns the mean of a figure over the seeds.
func (s ScalerRuns) Interval(f score.Figure) score.Interval { return score.IntervalOf(s.Values(f)) }

// scaler returns the runs of a scaler by name; ok is false if it was not asked for.
func (o Outcome) scaler(name string) (runs ScalerRuns, ok bool) {
	i := slices.IndexFunc(o.Scalers, func(s ScalerRuns) bool { return s.Name == name })
	if i < 0 {
		return ScalerRuns{}, false
	}
	return o.Scalers[i], true
}

// moreThan returns how much larger a figure is than that of a reference; not known of the reference
// itself, and without it.
func (o Outcome) moreThan(reference string, s ScalerRuns, f score.Figure) score.Interval {
	than, ok := o.scaler(reference)
	if !ok || s.Name == reference {
		return score.IntervalOf(nil)
	}
	return score.Difference(s.Values(f), than.Values(f))
}
