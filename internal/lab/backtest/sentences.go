package backtest

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/pipeline"
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
	add("forecast.noiseMargin", d.Params.NoiseMargin, b.Params.NoiseMargin)
	add("window", d.Params.Window, b.Params.Window)
	add("decision.scaleDownMargin", d.Params.ScaleDownMargin, b.Params.ScaleDownMargin)
	add("horizon.multiplier", d.Params.HorizonMultiplier, b.Params.HorizonMultiplier)
	add("horizon.reactionDelay", d.Params.ReactionDelay, b.Params.ReactionDelay)
	add("redistribution.timeout", d.Params.RedistributionTimeout, b.Params.RedistributionTimeout)
	add("smoothing.levelUp", d.Params.LevelUp, b.Params.LevelUp)
	add("smoothing.levelDown", d.Params.LevelDown, b.Params.LevelDown)
	add("smoothing.trendUp", d.Params.TrendUp, b.Params.TrendUp)
	add("smoothing.trendDown", d.Params.TrendDown, b.Params.TrendDown)
	return out
}

// Spec is a part of a PredictedMetric with what is advised; empty if nothing is.
func (a *Advice) Spec() string {
	if !a.Holds() {
		return ""
	}
	out, head := map[string]any{}, ""
	if a.Best.Params.Method == pipeline.Adaptive { // which is no PredictedMetric's unless it says so
		out["forecast"] = map[string]any{"method": string(pipeline.Adaptive)}
	}
	for _, c := range a.Changes() {
		group, field, nested := strings.Cut(c.Field, ".")
		switch {
		case c.Field == "metric":
		case !nested:
			out[group] = c.To
		default:
			fields, ok := out[group].(map[string]any)
			if !ok {
				fields = map[string]any{}
				out[group] = fields
			}
			fields[field] = c.To
		}
	}
	if a.Best.Metric == Requests {
		head = "# of a metric in requests per second\n"
		out["threshold"] = fmt.Sprintf("%.4g", a.Best.Target*a.Capacity)
	}
	text, err := yaml.Marshal(map[string]any{"spec": out})
	if err != nil {
		panic(err) // of maps of strings
	}
	return head + string(text)
}

// Sentences say what is advised and why, in words.
func (a *Advice) Sentences() []string {
	searched := fmt.Sprintf("%d settings of %s were tried on parts of the first %.0f%% of the trace (%.1f h), a minute in violation counted as much as %s.",
		a.Tried, a.Scaler, 100*tunedShare, a.Tuned.Best.Hours, podHours(a.ViolationCost))
	if a.Best == a.Default {
		return []string{"Keep the settings.", searched + " None did better."}
	}
	changes := make([]string, 0, 4)
	for _, c := range a.Changes() {
		changes = append(changes, fmt.Sprintf("%s %s instead of %s", c.Field, c.To, c.From))
	}
	set := strings.Join(changes, ", ")
	found := fmt.Sprintf("%s There %s.", searched, compared(a.Tuned, a.ViolationCost))
	judged := fmt.Sprintf("on parts of the rest (%.1f h), which the search did not see, %s.", a.Judged.Best.Hours, compared(a.Judged, a.ViolationCost))
	if !a.Holds() {
		verdict := "It did not hold up: "
		if a.Judged.Gain(a.ViolationCost) > 0 {
			verdict = "Too little of it held up to change them for: "
		}
		return []string{"Keep the settings.", fmt.Sprintf("%s That was with %s.", found, set), verdict + judged}
	}
	return []string{fmt.Sprintf("Set %s.", set), found, "It held up: " + judged}
}

// compared says what the best settings do to the figures.
func compared(c Comparison, violationCost float64) string {
	return fmt.Sprintf("violations went from %.1f to %.1f minutes and pod-hours from %.1f to %.1f, both together %s",
		c.Default.ViolationMinutes, c.Best.ViolationMinutes, c.Default.PodHours, c.Best.PodHours, smaller(100*c.Gain(violationCost)))
}

func podHours(n float64) string {
	if n == 1 {
		return "a pod-hour"
	}
	return fmt.Sprintf("%g pod-hours", n)
}

func smaller(percent float64) string {
	if percent < 0 {
		return fmt.Sprintf("%.1f%% more", -percent)
	}
	return fmt.Sprintf("%.1f%% less", percent)
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
