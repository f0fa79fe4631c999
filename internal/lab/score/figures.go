package score

// Requests are the figures of a run that tell of requests. They are of those that arrived in what counts, without the
// lead-in. Times are of all that were sent, whether they succeeded or not, as load generators report them.
type Requests struct {
	Sent, Errors, Dropped float64 // dropped ones were never sent: too many were under way
	Success               float64 // share of those sent
	Mean, P50, P90, P99   float64 // from being sent to the answer or the failure, in ms
}

// Figures are all of a run.
type Figures struct {
	Requests
	Pods
}

// Figure is one of the figures, by its name in files.
type Figure struct {
	Name     string
	Decimals int // that are worth writing down
	Of       func(Figures) float64
}

// All returns the figures there are: first those of the summary, in its order.
func All() []Figure {
	return append(Summary(), []Figure{
		{"sent", 2, func(f Figures) float64 { return f.Sent }},
		{"dropped", 2, func(f Figures) float64 { return f.Dropped }},
		{"short_pods", 4, func(f Figures) float64 { return f.Short }},
		{"spare_pods", 4, func(f Figures) float64 { return f.Spare }},
		{"violation_minutes", 4, func(f Figures) float64 { return f.ViolationMinutes }},
		{"saturated_minutes", 4, func(f Figures) float64 { return f.SaturatedMinutes }},
	}...)
}

// Summary returns the figures that a comparison begins with.
func Summary() []Figure {
	return []Figure{
		{"success", 6, func(f Figures) float64 { return f.Success }},
		{"mean_ms", 2, func(f Figures) float64 { return f.Mean }},
		{"p50_ms", 2, func(f Figures) float64 { return f.P50 }},
		{"p90_ms", 2, func(f Figures) float64 { return f.P90 }},
		{"p99_ms", 2, func(f Figures) float64 { return f.P99 }},
		{"errors", 2, func(f Figures) float64 { return f.Errors }},
		{"pod_seconds", 2, func(f Figures) float64 { return f.Seconds }},
		{"under_s", 2, func(f Figures) float64 { return f.UnderSeconds }},
		{"over_s", 2, func(f Figures) float64 { return f.OverSeconds }},
		{"actions", 2, func(f Figures) float64 { return f.Actions }},
		{"reversals", 2, func(f Figures) float64 { return f.Reversals }},
	}
}
