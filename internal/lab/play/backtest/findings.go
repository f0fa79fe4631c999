package backtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/internal/lab/report"
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

// Findings summarize the tables in sentences.
func (r *Result) Findings() []string {
	var out []string
	a, hasOurs := r.row(ours)
	b, hasRival := r.row(rival)
	if hasOurs && hasRival {
		out = append(out, fmt.Sprintf("With Foresail the load of a pod was above %g for %.1f minutes (%.2f%% of the time), with an HPA for %.1f minutes (%.2f%%). "+
			"Foresail paid for %.1f pod-hours, %s an HPA, which paid for %.1f.", r.Options.Threshold, a.AboveThresholdMinutes, 100*a.AboveThresholdShare(),
			b.AboveThresholdMinutes, 100*b.AboveThresholdShare(), a.PodHours(), than(a.PodHours()/b.PodHours()), b.PodHours()))
		if p := r.Options.Prices; p != nil {
			ourBill, theirBill := a.Bill(p), b.Bill(p)
			out = append(out, fmt.Sprintf("In money, Foresail costs %s, %s an HPA, which costs %s.", p.Text(ourBill), than(ourBill/theirBill), p.Text(theirBill)))
		}
		out = append(out, r.atEqual()...)
	}
	if hasOurs && a.AboveThresholdMinutes > 0 {
		out = append(out, r.abrupt(a))
	}
	if c, ok := r.row(equal); ok && hasOurs {
		out = append(out, r.sameBehavior(a, c))
	}
	if r.BeyondMax > 0 {
		out = append(out, fmt.Sprintf("For %.1f minutes even all %d pods would have been too few: raise the maximum to stay at or below the threshold.",
			r.BeyondMax, r.Options.Max))
	}
	return out
}

// abrupt says what of the time above the threshold no other forecast would change.
func (r *Result) abrupt(a Row) string {
	return fmt.Sprintf("Of the %.1f minutes above the threshold with Foresail, %.1f are bursts of less than 15s, and %.1f are within %s of a jump by half or more, which is about how long pods for it take. "+
		"With as many pods no other forecast changes the former, nor the latter unless jumps recur.",
		a.AboveThresholdMinutes, a.Abrupt.MomentaryMinutes, a.Abrupt.SuddenMinutes, duration(r.Options.Startup+hpaPeriod))
}

// atEqual compares the two at equal cost, and at equal time above the threshold.
func (r *Result) atEqual() []string {
	at, ok := r.atThreshold()
	if !ok {
		return nil
	}
	var out []string
	if share, ok := r.read(rival, at.MeanPods(), Figures.MeanPods, Figures.AboveThresholdShare); ok {
		out = append(out, r.onSample(fmt.Sprintf("With another target, so that it pays for as many pods as Foresail (%.2f on average), an HPA would be above the threshold for %.2f%% of the time, "+
			"Foresail for %.2f%%.", at.MeanPods(), 100*share, 100*at.AboveThresholdShare())))
	}
	if pods, ok := r.read(rival, at.AboveThresholdShare(), Figures.AboveThresholdShare, Figures.MeanPods); ok {
		out = append(out, r.onSample(fmt.Sprintf("With a target that keeps it above the threshold as rarely as Foresail (%.2f%% of the time), an HPA would pay for %.2f pods on average, Foresail for %.2f.",
			100*at.AboveThresholdShare(), pods, at.MeanPods())))
	}
	return out
}

// sameBehavior compares with the rival if its HPA has the behaviour of ours, which leaves the effect of the forecast.
func (r *Result) sameBehavior(a, c Row) string {
	text := fmt.Sprintf("With the behavior of Foresail's, an HPA would be above the threshold for %.1f minutes (%.2f%% of the time) "+
		"and pay for %.1f pod-hours, %s Foresail.",
		c.AboveThresholdMinutes, 100*c.AboveThresholdShare(), c.PodHours(), than(c.PodHours()/a.PodHours()))
	at, ok := r.atThreshold()
	if !ok {
		return text
	}
	if share, ok := r.read(equal, at.MeanPods(), Figures.MeanPods, Figures.AboveThresholdShare); ok {
		text += " " + r.onSample(fmt.Sprintf(
			"For as many pods (%.2f) it would be above the threshold for %.2f%% of the time, Foresail for %.2f%%.",
			at.MeanPods(), 100*share, 100*at.AboveThresholdShare()))
	}
	if pods, ok := r.read(equal, at.AboveThresholdShare(), Figures.AboveThresholdShare, Figures.MeanPods); ok {
		text += " " + r.onSample(fmt.Sprintf(
			"Above it as rarely (%.2f%%), it would pay for %.2f pods, Foresail for %.2f.",
			100*at.AboveThresholdShare(), pods, at.MeanPods()))
	}
	return text
}

// onSample adds to a sentence that its figures are of the sampled hours, which differ from those of the tables; nothing if all was played.
func (r *Result) onSample(sentence string) string {
	if !r.Sampled() {
		return sentence
	}
	return fmt.Sprintf("On %.0f hours sampled from the traffic, %s%s", r.FrontierHours, strings.ToLower(sentence[:1]), sentence[1:])
}

// atThreshold is ours on the frontier, with the target that it has in the summary.
func (r *Result) atThreshold() (Row, bool) {
	i := slices.IndexFunc(r.Frontier, func(row Row) bool { return row.Scaler == ours && row.Target == r.Options.Threshold })
	if i < 0 {
		return Row{}, false
	}
	return r.Frontier[i], true
}

// read interpolates one measure on the frontier of a scaler at a value of another; false beyond the targets that were tried.
func (r *Result) read(name string, value float64, of, desired func(Figures) float64) (float64, bool) {
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
				from, to := desired(before.Figures), desired(row.Figures)
				least, found = min(least, from+(to-from)*(value-a)/(b-a)), true
			}
		}
		before = row
	}
	return least, found
}

// than compares with something by a ratio, such as "5.3% more than".
func than(ratio float64) string {
	switch text := report.More(ratio, 1, "less"); {
	case text != "":
		return text + " than"
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return "compared with"
	}
	return "as much as"
}

// Forecasts returns the ways to forecast, the baselines first. Those have the horizon of Foresail.
func (r *Result) Forecasts() []Forecast {
	var out []Forecast
	base := slices.IndexFunc(r.Summary, func(row Row) bool { return row.Scaler == ours && row.Forecast.N > 0 })
	if base < 0 {
		base = slices.IndexFunc(r.Summary, func(row Row) bool { return row.Forecast.N > 0 })
	}
	if base < 0 {
		return nil
	}
	e := r.Summary[base].Forecast
	naive := e.Ways[LastSecond].Way.per(e.N)
	for w, c := range e.Ways {
		if c.N > 0 {
			out = append(out, forecastOf(Way(w).String(), c.N, c.Way, e, naive).against(c))
		}
	}
	for _, row := range r.Summary {
		if f := row.Forecast; f.N > 0 {
			one := forecastOf(row.Scaler, f.N, f.Forecast, f, naive)
			one.Late, one.LateLearned, one.Pinball = f.Lateness(), f.Learned.Lateness(), f.Pinball/float64(f.N)
			out = append(out, one)
		}
	}
	return out
}

// beyondMax is for how many minutes the maximum number of pods would have been too few.
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

func forecastOf(name string, n int, sum Loss, e Errors, naive Loss) Forecast {
	return Forecast{
		Name: name, Horizon: time.Duration(e.Horizon / float64(e.N) * float64(time.Second)),
		Error:  sum.per(n),
		Scaled: Loss{ratio(sum.per(n).Second, naive.Second), ratio(sum.per(n).Rate, naive.Rate)},
		Ours:   Loss{math.NaN(), math.NaN()}, Late: math.NaN(), LateLearned: math.NaN(), Pinball: math.NaN(),
	}
}

// against adds how Foresail's forecast did at the same times.
func (f Forecast) against(c Compared) Forecast {
	f.Ours = Loss{ratio(c.Ours.Second, c.Way.Second), ratio(c.Ours.Rate, c.Way.Rate)}
	return f
}
