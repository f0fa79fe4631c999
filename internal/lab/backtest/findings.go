package backtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The scalers that the findings compare.
const (
	ours  = "foresail-total"
	rival = "keda"
	equal = "keda/same-behavior" // the rival, but its HPA behaves as that of ours
)

// row returns a scaler's row of the summary.
func (r *Result) row(name string) (Row, bool) {
	i := slices.IndexFunc(r.Summary, func(row Row) bool { return row.Scaler == name })
	if i < 0 {
		return Row{}, false
	}
	return r.Summary[i], true
}

// Findings say in words what the tables come to.
func (r *Result) Findings() []string {
	var out []string
	a, hasOurs := r.row(ours)
	b, hasRival := r.row(rival)
	if hasOurs && hasRival {
		out = append(out, fmt.Sprintf("With %s the load of a pod was above %g for %.1f minutes (%.2f%% of the time), with %s for %.1f minutes (%.2f%%). "+
			"%s paid for %.1f pod-hours, %s for %.1f (%s).", ours, r.Options.Threshold, a.ViolationMinutes, 100*a.ViolationShare(),
			rival, b.ViolationMinutes, 100*b.ViolationShare(), ours, a.PodHours, rival, b.PodHours, more(a.PodHours/b.PodHours)))
		out = append(out, r.atEqual()...)
	}
	if c, ok := r.row(equal); ok && hasOurs {
		out = append(out, r.sameBehavior(a, c))
	}
	if r.BeyondMax > 0 {
		out = append(out, fmt.Sprintf("For %.1f minutes even all %d pods would have been too few: a higher maximum is needed to have no violations.",
			r.BeyondMax, r.Options.Max))
	}
	return out
}

// atEqual compares the two where the rival is set to be late as often as ours at the threshold, or to cost as much: on
// different scales they would both be right.
func (r *Result) atEqual() []string {
	at, ok := r.atThreshold()
	if !ok {
		return nil
	}
	var out []string
	if share, ok := r.read(rival, at.Pods(), Figures.Pods, Figures.ViolationShare); ok {
		out = append(out, fmt.Sprintf("With another target, so that it pays for as many pods as %s (%.2f on average), %s would be late %.2f%% of the time, "+
			"%s %.2f%%.", ours, at.Pods(), rival, 100*share, ours, 100*at.ViolationShare()))
	}
	if pods, ok := r.read(rival, at.ViolationShare(), Figures.ViolationShare, Figures.Pods); ok {
		out = append(out, fmt.Sprintf("With a target that has it late as rarely as %s (%.2f%% of the time), %s would pay for %.2f pods on average, %s for %.2f.",
			ours, 100*at.ViolationShare(), rival, pods, ours, at.Pods()))
	}
	return out
}

// sameBehavior says what the rival comes to if its HPA behaves as that of ours does: what is left is what the forecast does.
func (r *Result) sameBehavior(a, c Row) string {
	text := fmt.Sprintf("With the behavior of %s's HPA, %s would be late for %.1f minutes (%.2f%% of the time) "+
		"and pay for %.1f pod-hours, %s %s", ours, rival, c.ViolationMinutes, 100*c.ViolationShare(), c.PodHours, than(c.PodHours/a.PodHours), ours)
	at, ok := r.atThreshold()
	if !ok {
		return text + "."
	}
	if share, ok := r.read(equal, at.Pods(), Figures.Pods, Figures.ViolationShare); ok {
		text += fmt.Sprintf("; for as many pods (%.2f) it would be late %.2f%% of the time, %s %.2f%%", at.Pods(), 100*share, ours, 100*at.ViolationShare())
	}
	if pods, ok := r.read(equal, at.ViolationShare(), Figures.ViolationShare, Figures.Pods); ok {
		text += fmt.Sprintf("; late as rarely (%.2f%%), it would pay for %.2f pods, %s for %.2f", 100*at.ViolationShare(), pods, ours, at.Pods())
	}
	return text + "."
}

// atThreshold is ours on the frontier, as it was in the summary.
func (r *Result) atThreshold() (Row, bool) {
	i := slices.IndexFunc(r.Frontier, func(row Row) bool { return row.Scaler == ours && row.Target == r.Options.Threshold })
	if i < 0 {
		return Row{}, false
	}
	return r.Frontier[i], true
}

// read reads one measure off the frontier of a scaler where another has a value, between the targets that were tried; false
// if it is beyond them.
func (r *Result) read(name string, value float64, of, wanted func(Figures) float64) (float64, bool) {
	least, found := math.Inf(1), false
	var before *Row
	for i := range r.Frontier {
		row := &r.Frontier[i]
		if row.Scaler != name {
			continue
		}
		if before != nil {
			a, b := of(before.Figures), of(row.Figures)
			if a != b && (a-value)*(b-value) <= 0 {
				from, to := wanted(before.Figures), wanted(row.Figures)
				least, found = min(least, from+(to-from)*(value-a)/(b-a)), true
			}
		}
		before = row
	}
	return least, found
}

// more says how much more or less a ratio is than one.
func more(ratio float64) string {
	switch percent := 100 * (ratio - 1); {
	case math.IsNaN(percent) || math.IsInf(percent, 0):
		return "no ratio"
	case percent >= 0.05:
		return fmt.Sprintf("%.1f%% more", percent)
	case percent <= -0.05:
		return fmt.Sprintf("%.1f%% less", -percent)
	default:
		return "as much"
	}
}

// than is more with a word to go on with.
func than(ratio float64) string {
	text := more(ratio)
	if strings.HasSuffix(text, "more") || strings.HasSuffix(text, "less") {
		return text + " than"
	}
	return text + " as"
}

// Forecast is how far one way to forecast was off.
type Forecast struct {
	Name    string
	Horizon float64 // seconds, on average
	Error   float64 // mean, absolute, in pods' work
	MASE    float64
}

// Forecasts returns the ways to forecast, the baselines first. Those are over the horizon of Foresail.
func (r *Result) Forecasts() []Forecast {
	var out []Forecast
	of := func(name string, e Errors, sum float64) {
		out = append(out, Forecast{Name: name, Horizon: e.Horizon / float64(e.N), Error: sum / float64(e.N), MASE: e.scaled(sum)})
	}
	base := slices.IndexFunc(r.Summary, func(row Row) bool { return row.Scaler == ours && row.Forecast.N > 0 })
	if base < 0 {
		base = slices.IndexFunc(r.Summary, func(row Row) bool { return row.Forecast.N > 0 })
	}
	if base < 0 {
		return nil
	}
	e := r.Summary[base].Forecast
	of("naive: the last second stays", e, e.Naive)
	of(fmt.Sprintf("mean of the last %d s stays", meanOver), e, e.Mean)
	of(fmt.Sprintf("straight line through the last %d s", observed), e, e.Linear)
	for _, row := range r.Summary {
		if row.Forecast.N > 0 {
			of(row.Scaler, row.Forecast, row.Forecast.Forecast)
		}
	}
	return out
}

// beyondMax is for how many minutes all pods that there may be would have been too few.
func (p *player) beyondMax() float64 {
	seconds := 0
	load, most := p.load(), float64(p.Max)*p.Threshold*p.Capacity
	for t := int64(0); t < p.Trace.Length().Milliseconds()/second; t++ {
		if load.Rate(t*second+second/2) > most {
			seconds++
		}
	}
	return float64(seconds) / 60
}
