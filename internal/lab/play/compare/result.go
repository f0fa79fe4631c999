package compare

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

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

// WriteSummary writes a line for each profile and scaler: means over the seeds. Its columns are part of the command's
// interface. Success is a share.
func (r *Result) WriteSummary(w io.Writer) error {
	figures := score.Summary()
	rows := [][]string{append([]string{"profile", "scaler", "seeds"}, names(figures)...)}
	r.each(func(o Outcome, s ScalerRuns) {
		row := []string{o.Profile, s.Name, strconv.Itoa(len(s.Runs))}
		for _, f := range figures {
			row = append(row, decimal(s.Interval(f).Mean, f.Decimals))
		}
		rows = append(rows, row)
	})
	return writeCSV(w, rows)
}

// WriteIntervals writes a line for each profile and scaler: for each figure its mean, half the width of its 95% interval,
// and the same of how much more it is than the rival's, seed by seed. What is not known is left empty.
func (r *Result) WriteIntervals(w io.Writer) error {
	header := []string{"profile", "scaler", "seeds"}
	for _, f := range score.All() {
		header = append(header, f.Name, f.Name+"_half", f.Name+"_minus_"+Rival, f.Name+"_minus_"+Rival+"_half")
	}
	rows := [][]string{header}
	r.each(func(o Outcome, s ScalerRuns) {
		row := []string{o.Profile, s.Name, strconv.Itoa(len(s.Runs))}
		for _, f := range score.All() {
			own, more := s.Interval(f), o.moreThanRival(s, f)
			row = append(row, decimal(own.Mean, f.Decimals), decimal(own.Half, f.Decimals), decimal(more.Mean, f.Decimals), decimal(more.Half, f.Decimals))
		}
		rows = append(rows, row)
	})
	return writeCSV(w, rows)
}

// WriteSeeds writes a line for each run.
func (r *Result) WriteSeeds(w io.Writer) error {
	figures := score.All()
	rows := [][]string{append([]string{"profile", "scaler", "seed"}, names(figures)...)}
	r.each(func(o Outcome, s ScalerRuns) {
		for _, run := range s.Runs {
			row := []string{o.Profile, s.Name, strconv.FormatUint(run.Seed, 10)}
			for _, f := range figures {
				row = append(row, decimal(f.Of(run.Figures), f.Decimals))
			}
			rows = append(rows, row)
		}
	})
	return writeCSV(w, rows)
}

// moreThanRival returns how much larger a figure is than the rival's; not known of the rival itself, and without it.
func (o Outcome) moreThanRival(s ScalerRuns, f score.Figure) score.Interval {
	rival, ok := o.scaler(Rival)
	if !ok || s.Name == Rival {
		return score.IntervalOf(nil)
	}
	return score.Difference(s.Values(f), rival.Values(f))
}

func (r *Result) each(do func(Outcome, ScalerRuns)) {
	for _, o := range r.Outcomes {
		for _, s := range o.Scalers {
			do(o, s)
		}
	}
}

func names(figures []score.Figure) []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.Name)
	}
	return names
}

// decimal writes a number for a program, and one that is not known as nothing.
func decimal(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if zero, err := strconv.ParseFloat(text, 64); err == nil && zero == 0 {
		return strconv.FormatFloat(0, 'f', decimals, 64) // not -0.00
	}
	return text
}

func writeCSV(w io.Writer, rows [][]string) error {
	return csv.NewWriter(w).WriteAll(rows)
}
