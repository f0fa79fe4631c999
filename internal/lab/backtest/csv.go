package backtest

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// WriteSummary writes a line for each scaler, as summary.csv has it.
func (r *Result) WriteSummary(w io.Writer) error {
	rows := [][]string{{
		"trace", "scaler", "violation_minutes", "saturated_minutes", "pod_hours", "under_s", "over_s", "actions", "reversals", "mase",
	}}
	for _, row := range r.Summary {
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, decimals(row.ViolationMinutes, 2), decimals(row.SaturatedMinutes, 2), decimals(row.PodHours, 2),
			decimals(row.UnderSeconds, 1), decimals(row.OverSeconds, 1), decimals(row.Actions, 1), decimals(row.Reversals, 1),
			decimals(row.Forecast.MASE(), 3),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WriteFrontier writes a line for each scaler and target, as frontier.csv has it.
func (r *Result) WriteFrontier(w io.Writer) error {
	rows := [][]string{{"trace", "scaler", "target", "hours", "violation_minutes", "saturated_minutes", "pod_hours"}}
	for _, row := range r.Frontier {
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, decimals(row.Target, 3), decimals(row.Hours, 2),
			decimals(row.ViolationMinutes, 2), decimals(row.SaturatedMinutes, 2), decimals(row.PodHours, 2),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WriteForecasts writes a line for each way to forecast, as forecast.csv has it.
func (r *Result) WriteForecasts(w io.Writer) error {
	rows := [][]string{{"trace", "forecast", "horizon_s", "mean_error_pods", "mase"}}
	for _, f := range r.Forecasts() {
		rows = append(rows, []string{r.Options.Trace.Name, f.Name, decimals(f.Horizon, 1), decimals(f.Error, 4), decimals(f.MASE, 3)})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// decimals writes a number with so many decimals, and nothing for what is not known.
func decimals(v float64, n int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}
