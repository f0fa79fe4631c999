package compare

import (
	"fmt"

	"github.com/foresail/foresail/internal/lab/report"
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

// reportCalibration adds what the paper measured next to what came out here, for the profiles and
// scalers that both have. The model of pods was fitted to hpa-cpu and keda; paper is what it
// predicts.
func reportCalibration(r *Result, out *report.Report) {
	t := report.NewTable("PROFILE", "SCALER", "SUCCESS %", "MEAN ms", "P50 ms", "P90 ms", "P99 ms", "ERRORS", "")
	for _, m := range paper {
		for _, o := range r.Outcomes {
			if s, ok := o.scaler(m.scaler); ok && o.Profile == m.profile {
				t.Add(m.compared(s)...)
			}
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	out.Print("", fmt.Sprintf("calibration: simulated / measured once by the paper "+
		"(success within %d points, mean and p90 within %.0f%%)",
		bandSuccess, 100*bandTime))
	out.PrintTable(t)
}

// compared returns the row of one scaler.
func (m measured) compared(s ScalerRuns) []string {
	row := []string{m.profile, m.scaler}
	inside := true
	for _, reported := range []struct {
		column
		value float64
	}{{successRate, m.success}, {mean, m.mean}, {p50, m.p50}, {p90, m.p90}, {p99, m.p99}, {failed, m.errors}} {
		c, theirs := reported.column, reported.value
		ours := s.Interval(c.figure).Mean
		row = append(row, c.rounded(ours)+" / "+c.rounded(theirs))
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

// accepts reports whether a figure is in its band; figures without a band always are.
func (m measured) accepts(f score.Figure, ours, theirs float64) bool {
	switch f.Name {
	case successRate.figure.Name:
		return ours >= theirs-bandSuccess && ours <= theirs+bandSuccess
	case mean.figure.Name, p90.figure.Name:
		return ours >= theirs*(1-bandTime) && ours <= theirs*(1+bandTime)
	}
	return true
}
