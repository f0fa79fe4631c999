package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/foresail/foresail/internal/lab/score"
)

// measured is what the paper reports of one scaler under one load, in its tables 6 and 7.
type measured struct {
	profile, scaler                      string
	success, mean, p50, p90, p99, errors float64 // success in per cent, times in ms
}

var paper = []measured{
	{"ramp", "hpa-cpu", 90.97, 1499, 522, 4168, 10001, 12039},
	{"ramp", "keda", 95.11, 1174, 154, 3530, 10001, 6591},
	{"ramp", "paper", 99.47, 167, 26, 317, 1970, 718},
	{"spike", "hpa-cpu", 77.31, 2205, 1102, 7338, 10001, 21067},
	{"spike", "keda", 87.47, 1989, 855, 6108, 10001, 11212},
	{"spike", "paper", 91.51, 1126, 55, 3385, 10001, 8028},
}

const (
	bandSuccess = 5    // points
	bandTime    = 0.25 // of the paper's mean and p90
)

// WriteCalibration writes what the paper measured beside what came out here, for the profiles and scalers that both have.
// The model of pods was fitted to hpa-cpu and keda; paper is what it predicts.
func (r *Result) WriteCalibration(w io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	writeRow(table, []string{"PROFILE", "SCALER", "SUCCESS %", "MEAN ms", "P50 ms", "P90 ms", "P99 ms", "ERRORS", ""})
	rows := 0
	for _, m := range paper {
		for _, o := range r.Outcomes {
			s, ok := o.scaler(m.scaler)
			if !ok || o.Profile != m.profile {
				continue
			}
			rows++
			writeRow(table, m.beside(s))
		}
	}
	if rows == 0 {
		return nil
	}
	_ = table.Flush() // a strings.Builder takes all
	_, err := fmt.Fprintf(w, "\ncalibration: here / in the paper's single runs (success within %d points, mean and p90 within %.0f%%)\n%s",
		bandSuccess, 100*bandTime, text.String())
	return err
}

// beside returns the row of one scaler.
func (m measured) beside(s ScalerRuns) []string {
	row := []string{m.profile, m.scaler}
	inside := true
	for i, c := range users()[:6] {
		theirs := []float64{m.success, m.mean, m.p50, m.p90, m.p99, m.errors}[i]
		ours := s.Interval(c.figure).Mean
		row = append(row, rounded(ours, c.decimals)+" / "+rounded(theirs, c.decimals))
		inside = inside && m.accepts(c.figure, ours, theirs)
	}
	verdict := "within"
	if !inside {
		verdict = "outside"
	}
	if m.scaler == "paper" {
		verdict = "predicted, " + verdict
	}
	return append(row, verdict)
}

// accepts tells whether a figure is in the band; those that have none always are.
func (m measured) accepts(f score.Figure, ours, theirs float64) bool {
	switch f.Name {
	case "SUCCESS %":
		return ours >= theirs-bandSuccess && ours <= theirs+bandSuccess
	case "MEAN ms", "P90 ms":
		return ours >= theirs*(1-bandTime) && ours <= theirs*(1+bandTime)
	}
	return true
}
