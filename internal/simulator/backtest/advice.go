package backtest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/pipeline"
)

// tunedShare is the part of a trace, from its beginning, that settings are searched on. They are judged on the rest.
const tunedShare = 0.6

// noteworthy is the share of the bill that settings must save, where they are judged, to be advised.
const noteworthy = 0.01

// dimension is a field that the search varies.
type dimension struct {
	field string // of a PredictedMetric
	set   []func(*Setting)
}

// dimensions are what the search varies: fields that every method reads, and those of one method.
func dimensions(threshold float64, method pipeline.Method) []dimension {
	own := smoothing
	if method == pipeline.Adaptive {
		own = noise
	}
	return append(own(), common(threshold)...)
}

// vary makes a dimension of values of one field.
func vary[T any](field string, set func(s *Setting, value T), values ...T) dimension {
	d := dimension{field: field}
	for _, value := range values {
		d.set = append(d.set, func(s *Setting) { set(s, value) })
	}
	return d
}

// common leaves out fields that follow from the cluster, whose values docs/hpa.md gives: the reaction delay is the HPA's
// period, and redistribution.timeout is that of the load balancer, which a backtest does not simulate.
func common(threshold float64) []dimension {
	targets := make([]float64, 0, 5)
	for _, by := range []float64{-0.15, -0.1, -0.05, 0.05, 0.1} {
		if target := math.Round((threshold+by)*1000) / 1000; target >= 0.1 && target < 1 {
			targets = append(targets, target)
		}
	}
	return []dimension{
		vary("threshold", func(s *Setting, v float64) { s.Target = v }, targets...),
		vary("horizon.multiplier", func(s *Setting, v float64) { s.Params.HorizonMultiplier = v }, 0.6, 0.9, 1.2, 1.6),
	}
}

// smoothing is what Holt's method alone reads. Weights for falling loads are at most 0.1.
func smoothing() []dimension {
	type weights struct{ level, trend float64 }
	return []dimension{vary("smoothing", func(s *Setting, w weights) {
		s.Params.LevelUp, s.Params.LevelDown, s.Params.TrendUp, s.Params.TrendDown = w.level, min(w.level, 0.1), w.trend, min(w.trend, 0.1)
	}, weights{0.1, 0.05}, weights{0.05, 0.02}, weights{0.2, 0.1}, weights{0.2, 0.2})}
}

// noise is what only the adaptive method reads, or reads with other defaults.
func noise() []dimension {
	return []dimension{
		vary("forecast.noiseMargin", func(s *Setting, v float64) { s.Params.NoiseMargin = v }, 0, 0.4, 1.2, 1.6),
		vary("window", func(s *Setting, v time.Duration) { s.Params.Window = v }, 2*time.Minute, 8*time.Minute),
		vary("decision.scaleDownMargin", func(s *Setting, v float64) { s.Params.ScaleDownMargin = v }, 0, 0.1, 0.2),
	}
}

// Advice is the result of a search for settings.
type Advice struct {
	Scaler        string
	Tried         int
	Default, Best Setting
	Tuned, Judged Comparison
	MinuteCost    float64 // pod-hours that a minute above the threshold costs
	Capacity      float64 // of a pod, requests per second
}

// Comparison has the figures of the two settings on one part of the trace.
type Comparison struct{ Default, Best Figures }

// Gain is the share of the bill that the best settings save; negative: that they add.
func (c Comparison) Gain(minuteCost float64) float64 {
	return 1 - c.Best.Bill(minuteCost)/c.Default.Bill(minuteCost)
}

// Holds reports whether the settings are worth changing, judged on the part that the search did not use.
func (a *Advice) Holds() bool {
	return a.Best != a.Default && a.Judged.Gain(a.MinuteCost) >= noteworthy
}

// advise searches for settings on the first part of the trace and judges them on the rest.
func (p *player) advise(ctx context.Context) (*Advice, error) {
	const name = "foresail-total"
	tuned, judged := p.parts()
	a := &Advice{Scaler: name, Default: p.setting(name), MinuteCost: p.MinuteCost, Capacity: p.Capacity}
	if err := p.search(ctx, a, tuned.sample(searchBudget, p.Seeds[0])); err != nil {
		return nil, err
	}
	figures, err := p.play(ctx, []Setting{a.Default, a.Best}, judged.sample(judgeBudget, p.Seeds[0]))
	if err != nil {
		return nil, err
	}
	a.Judged = Comparison{figures[0], figures[1]}
	return a, nil
}

// search changes one field after the other to what costs least, in at most two rounds.
func (p *player) search(ctx context.Context, a *Advice, on []section) error {
	first, err := p.play(ctx, []Setting{a.Default}, on)
	if err != nil {
		return err
	}
	known := map[Setting]Figures{a.Default: first[0]}
	a.Best = a.Default
	for range 2 {
		begin := a.Best
		for _, d := range dimensions(p.Threshold, a.Default.Params.Method) {
			var fresh []Setting
			candidates := d.of(a.Best)
			for _, c := range candidates {
				if _, ok := known[c]; !ok {
					fresh = append(fresh, c)
				}
			}
			figures, err := p.play(ctx, fresh, on)
			if err != nil {
				return err
			}
			for i, c := range fresh {
				known[c] = figures[i]
			}
			for _, c := range candidates {
				if known[c].Bill(p.MinuteCost) < known[a.Best].Bill(p.MinuteCost) {
					a.Best = c
				}
			}
		}
		if a.Best == begin {
			break
		}
	}
	a.Tried = len(known)
	a.Tuned = Comparison{known[a.Default], known[a.Best]}
	return nil
}

// of returns the variations of a setting.
func (d *dimension) of(s Setting) []Setting {
	out := make([]Setting, len(d.set))
	for i, set := range d.set {
		out[i] = s
		set(&out[i])
	}
	return out
}

// Change is one field of a PredictedMetric that is set otherwise, with its values as the API has them.
type Change struct{ Field, From, To string }

// Changes are what the best settings change.
func (a *Advice) Changes() []Change {
	var out []Change
	add := func(field, from, to string) {
		if from != to {
			out = append(out, Change{field, from, to})
		}
	}
	number := func(field string, from, to float64) { add(field, quantity(from), quantity(to)) }
	d, b := &a.Default, &a.Best
	number("threshold", a.inUnits(d), a.inUnits(b))
	number("forecast.noiseMargin", d.Params.NoiseMargin, b.Params.NoiseMargin)
	add("window", d.Params.Window.String(), b.Params.Window.String())
	number("decision.scaleDownMargin", d.Params.ScaleDownMargin, b.Params.ScaleDownMargin)
	number("horizon.multiplier", d.Params.HorizonMultiplier, b.Params.HorizonMultiplier)
	number("smoothing.levelUp", d.Params.LevelUp, b.Params.LevelUp)
	number("smoothing.levelDown", d.Params.LevelDown, b.Params.LevelDown)
	number("smoothing.trendUp", d.Params.TrendUp, b.Params.TrendUp)
	number("smoothing.trendDown", d.Params.TrendDown, b.Params.TrendDown)
	return out
}

// inUnits returns the threshold of a setting in units of the metric that it reads.
func (a *Advice) inUnits(s *Setting) float64 {
	if s.Metric == Requests {
		return s.Target * a.Capacity
	}
	return s.Target
}

// quantity writes a number as a quantity of the API, to a thousandth.
func quantity(v float64) string {
	return resource.NewMilliQuantity(int64(math.Round(v*1000)), resource.DecimalSI).String()
}

// AdviceFile is the name of the file with the YAML to apply.
const AdviceFile = "advice.yaml"

// YAML is a merge patch of a PredictedMetric with what is advised; empty if nothing is.
func (a *Advice) YAML() string {
	if !a.Holds() {
		return ""
	}
	spec := map[string]any{}
	for _, c := range a.Changes() {
		group, field, nested := strings.Cut(c.Field, ".")
		if !nested {
			spec[group] = c.To
			continue
		}
		fields, ok := spec[group].(map[string]any)
		if !ok {
			fields = map[string]any{}
			spec[group] = fields
		}
		fields[field] = c.To
	}
	text, err := yaml.Marshal(map[string]any{"spec": spec})
	if err != nil {
		panic(err) // of maps of strings
	}
	return string(text)
}

// Verdict says in one sentence whether to change the settings.
func (a *Advice) Verdict() string {
	percent := 100 * a.Judged.Gain(a.MinuteCost)
	switch {
	case a.Best == a.Default:
		return "Verdict: keep the settings. No other ones did better."
	case a.Holds():
		return fmt.Sprintf("Verdict: change the settings. That costs %s on traffic that the search did not use.", smaller(percent))
	case percent > 0:
		return fmt.Sprintf("Verdict: keep the settings. The best ones found cost only %s on traffic that the search did not use.", smaller(percent))
	default:
		return fmt.Sprintf("Verdict: keep the settings. The best ones found cost %s on traffic that the search did not use.", smaller(percent))
	}
}

// HowToApply says what to do with the YAML.
func (a *Advice) HowToApply() string {
	text := fmt.Sprintf("Apply it with: kubectl patch predictedmetric NAME --type merge --patch-file %s", AdviceFile)
	if from, to := quantity(a.inUnits(&a.Default)), quantity(a.inUnits(&a.Best)); from != to {
		text += fmt.Sprintf("\nIn the HPA that reads predicted_load_total set target.averageValue to %s too.", to)
	}
	return text
}

// Reasons say what was tried and how the best settings did.
func (a *Advice) Reasons() []string {
	tried := fmt.Sprintf("Tried: %d settings of %s on the first %.0f%% of the trace (%.1f h of it), with a minute above the threshold as expensive as %s.",
		a.Tried, a.Scaler, 100*tunedShare, a.Tuned.Best.Hours, podHours(a.MinuteCost))
	if a.Best == a.Default {
		return []string{tried}
	}
	changes := make([]string, 0, 4)
	for _, c := range a.Changes() {
		changes = append(changes, fmt.Sprintf("%s: %s instead of %s", c.Field, c.To, c.From))
	}
	return []string{
		tried,
		fmt.Sprintf("Best: %s. %s.", strings.Join(changes, ", "), compared(a.Tuned, a.MinuteCost)),
		fmt.Sprintf("On the rest of the trace (%.1f h of it): %s.", a.Judged.Best.Hours, compared(a.Judged, a.MinuteCost)),
	}
}

// compared says what the best settings change in the figures.
func compared(c Comparison, minuteCost float64) string {
	return fmt.Sprintf("%.1f minutes above the threshold instead of %.1f, %.1f pod-hours instead of %.1f, together %s",
		c.Best.AboveThresholdMinutes, c.Default.AboveThresholdMinutes, c.Best.PodHours, c.Default.PodHours, smaller(100*c.Gain(minuteCost)))
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
