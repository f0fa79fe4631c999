package backtest

import (
	"fmt"
	"strings"
	"time"
)

// Change is one field that is set otherwise.
type Change struct{ Field, From, To string }

// Changes are what the best settings change, by the fields of a PredictedMetric.
func (a *Advice) Changes() []Change {
	var out []Change
	add := func(field string, from, to any) {
		if from != to {
			out = append(out, Change{field, fmt.Sprint(from), fmt.Sprint(to)})
		}
	}
	d, b := &a.Default, &a.Best
	add("threshold", d.Target, b.Target)
	add("metric", d.Metric, b.Metric)
	add("horizon.multiplier", d.Params.HorizonMultiplier, b.Params.HorizonMultiplier)
	add("horizon.reactionDelay", d.Params.ReactionDelay, b.Params.ReactionDelay)
	add("redistribution.timeout", d.Params.RedistributionTimeout, b.Params.RedistributionTimeout)
	add("smoothing.levelUp", d.Params.LevelUp, b.Params.LevelUp)
	add("smoothing.levelDown", d.Params.LevelDown, b.Params.LevelDown)
	add("smoothing.trendUp", d.Params.TrendUp, b.Params.TrendUp)
	add("smoothing.trendDown", d.Params.TrendDown, b.Params.TrendDown)
	return out
}

// Sentences say what is advised and why, in words.
func (a *Advice) Sentences() []string {
	searched := fmt.Sprintf("%d settings of %s were tried on parts of the first %.0f%% of the trace (%.1f h), a minute in violation counted as %g pod-hours.",
		a.Tried, a.Scaler, 100*tunedShare, a.Tuned.Best.Hours, a.ViolationCost)
	if a.Best == a.Default {
		return []string{"Advice: keep the settings. " + searched + " None did better."}
	}
	changes := make([]string, 0, 4)
	for _, c := range a.Changes() {
		changes = append(changes, fmt.Sprintf("%s %s instead of %s", c.Field, c.To, c.From))
	}
	before, after := a.Judged.Default, a.Judged.Best
	judged := fmt.Sprintf("on parts of the rest (%.1f h), which the search did not see, violations went from %.1f to %.1f minutes and pod-hours from %.1f to %.1f",
		after.Hours, before.ViolationMinutes, after.ViolationMinutes, before.PodHours, after.PodHours)
	gain := 100 * a.Judged.Gain(a.ViolationCost)
	first := fmt.Sprintf("%s The best had %s, and a bill smaller by %.1f%%.", searched, strings.Join(changes, ", "), 100*a.Tuned.Gain(a.ViolationCost))
	if !a.Holds() {
		return []string{
			"Advice: keep the settings. " + first,
			fmt.Sprintf("That did not hold up: %s, a bill %s.", judged, smaller(gain)),
		}
	}
	return []string{
		fmt.Sprintf("Advice: set %s.", strings.Join(changes, ", ")),
		first,
		fmt.Sprintf("It held up: %s, a bill %s.", judged, smaller(gain)),
	}
}

func smaller(percent float64) string {
	if percent < 0 {
		return fmt.Sprintf("larger by %.1f%%", -percent)
	}
	return fmt.Sprintf("smaller by %.1f%%", percent)
}

// duration writes a span without zeros at its end, in days from two of them on.
func duration(d time.Duration) string {
	if days := d.Hours() / 24; days >= 2 {
		return fmt.Sprintf("%.4g days", days)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
