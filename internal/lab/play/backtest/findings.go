package backtest

import (
	"fmt"
	"math"
	"strings"

	"github.com/foresail/foresail/internal/lab/report"
)

// The scalers that the findings compare.
const (
	ours  = "foresail-total"
	rival = "keda"
	equal = "keda/same-behavior" // the rival, but its HPA behaves as that of ours
)

// findings summarize the tables of a result in sentences.
type findings struct{ *Result }

// all returns the sentences.
func (f findings) all() []string {
	var out []string
	a, hasOurs := f.Summary.of(ours)
	b, hasRival := f.Summary.of(rival)
	if hasOurs && hasRival {
		out = append(out, fmt.Sprintf("With Foresail the load of a pod was above %g for %.1f minutes (%.2f%% of the time), with an HPA for %.1f minutes (%.2f%%). "+
			"Foresail paid for %.1f pod-hours, %s an HPA, which paid for %.1f.", f.Options.Threshold,
			a.AboveThresholdMinutes, 100*a.AboveThresholdShare(),
			b.AboveThresholdMinutes, 100*b.AboveThresholdShare(), a.PodHours(), than(a.PodHours()/b.PodHours()), b.PodHours()))
		if p := f.Options.Prices; p != nil {
			ourBill, theirBill := a.Bill(p), b.Bill(p)
			out = append(out, fmt.Sprintf("In money, Foresail costs %s, %s an HPA, which costs %s.", p.Text(ourBill),
				than(ourBill/theirBill), p.Text(theirBill)))
		}
		out = append(out, f.atEqual()...)
	}
	if hasOurs && a.AboveThresholdMinutes > 0 {
		out = append(out, f.abrupt(a))
	}
	if c, ok := f.Summary.of(equal); ok && hasOurs {
		out = append(out, f.sameBehavior(a, c))
	}
	if f.BeyondMax > 0 {
		out = append(out, fmt.Sprintf("For %.1f minutes even all %d pods would have been too few: raise the maximum to stay at or below the threshold.",
			f.BeyondMax, f.Options.Max))
	}
	return out
}

// abrupt says what of the time above the threshold no other forecast would change.
func (f findings) abrupt(a Row) string {
	return fmt.Sprintf("Of the %.1f minutes above the threshold with Foresail, %.1f are bursts of less than 15s, and %.1f are within %s of a jump by half or more, which is about how long pods for it take. "+
		"With as many pods no other forecast changes the former, nor the latter unless jumps recur.",
		a.AboveThresholdMinutes, a.Abrupt.MomentaryMinutes, a.Abrupt.SuddenMinutes, duration(f.Options.Startup+hpaPeriod))
}

// atEqual compares the two at equal cost, and at equal time above the threshold.
func (f findings) atEqual() []string {
	at, ok := f.Frontier.with(ours, f.Options.Threshold)
	if !ok {
		return nil
	}
	var out []string
	if share, ok := f.Frontier.read(rival, at.MeanPods(), Figures.MeanPods, Figures.AboveThresholdShare); ok {
		out = append(out, f.onSample(fmt.Sprintf("With another target, so that it pays for as many pods as Foresail (%.2f on average), an HPA would be above the threshold for %.2f%% of the time, "+
			"Foresail for %.2f%%.", at.MeanPods(), 100*share, 100*at.AboveThresholdShare())))
	}
	if pods, ok := f.Frontier.read(rival, at.AboveThresholdShare(), Figures.AboveThresholdShare, Figures.MeanPods); ok {
		out = append(out, f.onSample(fmt.Sprintf("With a target that keeps it above the threshold as rarely as Foresail (%.2f%% of the time), an HPA would pay for %.2f pods on average, Foresail for %.2f.",
			100*at.AboveThresholdShare(), pods, at.MeanPods())))
	}
	return out
}

// sameBehavior compares with the rival if its HPA has the behaviour of ours, which leaves the
// effect of the forecast.
func (f findings) sameBehavior(a, c Row) string {
	text := fmt.Sprintf("With the behavior of Foresail's, an HPA would be above the threshold for %.1f minutes (%.2f%% of the time) "+
		"and pay for %.1f pod-hours, %s Foresail.",
		c.AboveThresholdMinutes, 100*c.AboveThresholdShare(), c.PodHours(), than(c.PodHours()/a.PodHours()))
	at, ok := f.Frontier.with(ours, f.Options.Threshold)
	if !ok {
		return text
	}
	if share, ok := f.Frontier.read(equal, at.MeanPods(), Figures.MeanPods, Figures.AboveThresholdShare); ok {
		text += " " + f.onSample(fmt.Sprintf(
			"For as many pods (%.2f) it would be above the threshold for %.2f%% of the time, Foresail for %.2f%%.",
			at.MeanPods(), 100*share, 100*at.AboveThresholdShare()))
	}
	if pods, ok := f.Frontier.read(equal, at.AboveThresholdShare(), Figures.AboveThresholdShare, Figures.MeanPods); ok {
		text += " " + f.onSample(fmt.Sprintf(
			"Above it as rarely (%.2f%%), it would pay for %.2f pods, Foresail for %.2f.",
			100*at.AboveThresholdShare(), pods, at.MeanPods()))
	}
	return text
}

// onSample adds to a sentence that its figures are of the sampled hours, which differ from those of
// the tables; nothing if all was played.
func (f findings) onSample(sentence string) string {
	if !f.Sampled() {
		return sentence
	}
	return fmt.Sprintf("On %.0f hours sampled from the traffic, %s%s", f.FrontierHours, strings.ToLower(sentence[:1]),
		sentence[1:])
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
