package backtest

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes what was found for a terminal.
func (r *Result) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, line := range r.assumptions() {
		fmt.Fprintln(&b, line)
	}
	for _, finding := range r.Findings() {
		fmt.Fprintln(&b, finding)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scaler\tviolation min\t% of time\tsaturated min\tpod-hours\tpods\tactions\treversals\tMASE\t")
	for _, row := range r.Summary {
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%.1f\t%.1f\t%.2f\t%.0f\t%.0f\t%s\t\n", row.Scaler, row.ViolationMinutes, 100*row.ViolationShare(),
			row.SaturatedMinutes, row.PodHours, row.Pods(), row.Actions, row.Reversals, orUnknown(decimals(row.Forecast.MASE(), 2)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Advice != nil {
		fmt.Fprintln(&b, "\nAdvice")
		for _, sentence := range r.Advice.Sentences() {
			fmt.Fprintln(&b, sentence)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func orUnknown(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// assumptions says what was played, a sentence a line.
func (r *Result) assumptions() []string {
	o := r.Options
	capacity := fmt.Sprintf("A pod takes %.4g requests/s", o.Capacity)
	if o.CapacityDerived {
		capacity += fmt.Sprintf(" (derived: the trace's 99th percentile then takes half of %d pods; give --capacity for figures of your own)", o.Max)
	}
	return []string{
		fmt.Sprintf("%s: %s from %s, a value each %s, at most %.4g requests/s.", o.Trace.Name, duration(o.Trace.Length()),
			o.Trace.Start.Format("2006-01-02 15:04:05 UTC"), duration(o.Trace.Step), o.Trace.Largest()),
		fmt.Sprintf("%s, and %s to start. %d to %d pods; the load of each is not to exceed %g.", capacity, duration(o.Startup), o.Min, o.Max, o.Threshold),
	}
}
