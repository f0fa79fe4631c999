package backtest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/pipeline"
)

const (
	// tunedShare is the part of a trace, from its beginning, that settings are searched on. They
	// are judged on the rest.
	tunedShare = 0.6
	// noteworthy is the share that settings must save, where they are judged, to be advised.
	noteworthy = 0.01
	// mostPods bounds the maximum that is tried.
	mostPods = 1000
)

// dimension is a field that the search varies.
type dimension struct {
	field string // of a PredictedMetric
	set   []func(*Setting)
}

// dimensions returns what the search varies: the fields that docs/tuning.md has users change. All
// others follow from the cluster, or are learned. minReplicas is only raised: a trace shows no
// failure of a node, which is what the set minimum may be for.
func dimensions(p *Options, now *Setting) []dimension {
	out := []dimension{vary("threshold", func(s *Setting, v float64) { s.Target = v }, targetsAround(p.Threshold)...)}
	if now.Params.Method == pipeline.Adaptive {
		out = append(out, vary("lateness", func(s *Setting, v float64) { s.Params.Lateness = v }, 0.001, 0.005, 0.01,
			0.02, 0.05, 0.1))
	}
	if !p.FixedMin {
		out = append(out, vary("minReplicas", func(s *Setting, v int) { s.Min = v },
			within(now.Min+1, now.Max, now.Min+1, now.Min*3/2, 2*now.Min)...))
	}
	if !p.FixedMax {
		out = append(out, vary("maxReplicas", func(s *Setting, v int) { s.Max = v },
			within(now.Max+1, mostPods, now.Max*5/4, now.Max*3/2, 2*now.Max)...))
	}
	return out
}

// vary returns a dimension of values of one field.
func vary[T any](field string, set func(s *Setting, value T), values ...T) dimension {
	d := dimension{field: field}
	for _, value := range values {
		d.set = append(d.set, func(s *Setting) { set(s, value) })
	}
	return d
}

// targetsAround returns thresholds that are somewhat lower and higher than one.
func targetsAround(threshold float64) []float64 {
	var out []float64
	for _, by := range []float64{-0.15, -0.1, -0.05, 0.05, 0.1} {
		if target := math.Round((threshold+by)*1000) / 1000; target >= 0.1 && target < 1 {
			out = append(out, target)
		}
	}
	return out
}

// within returns the different values from least to most, in order.
func within(least, most int, values ...int) []int {
	slices.Sort(values)
	return slices.DeleteFunc(slices.Compact(values), func(v int) bool { return v < least || v > most })
}

// Advice is the result of a search for settings.
type Advice struct {
	Scaler        string
	Tried         int
	Fields        []string // that were varied
	Default, Best Setting
	Tuned, Judged Comparison
	// settings that no other one beats in both minutes and pod-hours, on the part that was searched
	Trades   []Row
	Prices   *score.Prices // nil: minutes are not weighed against pod-hours
	Capacity float64       // of a pod, requests per second
}

// Comparison has the figures of the two settings on one part of the trace.
type Comparison struct{ Default, Best Figures }

// beats reports whether figures have less of minutes above the threshold or of pod-hours than
// others, and not more of either.
func (f Figures) beats(o Figures) bool {
	return f.AboveThresholdMinutes <= o.AboveThresholdMinutes && f.PodHours() <= o.PodHours() &&
		(f.AboveThresholdMinutes < o.AboveThresholdMinutes || f.PodHours() < o.PodHours())
}

// rank returns what the search minimizes: the bill, or, without prices, the shares that are left of
// the default's minutes and pod-hours, which is infinite for settings that have more of either.
func (a *Advice) rank(f, byDefault Figures) float64 {
	switch {
	case a.Prices != nil:
		return f.Bill(a.Prices)
	case f != byDefault && !f.beats(byDefault):
		return math.Inf(1)
	}
	return leftOf(f.AboveThresholdMinutes, byDefault.AboveThresholdMinutes) + leftOf(f.PodHours(), byDefault.PodHours())
}

// leftOf returns the share that is left of a figure; 1 where there was nothing.
func leftOf(now, before float64) float64 {
	if before == 0 {
		return 1
	}
	return now / before
}

// Holds reports whether the settings are worth changing, judged on the part that the search did not use.
func (a *Advice) Holds() bool {
	d, b := a.Judged.Default, a.Judged.Best
	switch {
	case a.Best == a.Default:
		return false
	case a.Prices != nil:
		return leftOf(b.Bill(a.Prices), d.Bill(a.Prices)) <= 1-noteworthy
	}
	left := min(leftOf(b.AboveThresholdMinutes, d.AboveThresholdMinutes), leftOf(b.PodHours(), d.PodHours()))
	return b.beats(d) && left <= 1-noteworthy
}

// advise searches for settings on the first part of the trace and judges them on the rest.
func advise(ctx context.Context, p *player) (*Advice, error) {
	const name = ours
	tuned, judged := p.parts()
	a := &Advice{Scaler: name, Default: p.setting(name), Prices: p.Prices, Capacity: p.Capacity}
	if err := a.search(ctx, p, tuned.sample(searchBudget, p.Seeds[0])); err != nil {
		return nil, err
	}
	figures, err := p.play(ctx, []Setting{a.Default, a.Best}, judged.sample(judgeBudget, p.Seeds[0]))
	if err != nil {
		return nil, err
	}
	a.Judged = Comparison{figures[0], figures[1]}
	return a, nil
}

// search changes one field after the other to what ranks best, in at most two rounds.
func (a *Advice) search(ctx context.Context, p *player, on []section) error {
	first, err := p.play(ctx, []Setting{a.Default}, on)
	if err != nil {
		return err
	}
	tried, known := []Row{{a.Default, first[0]}}, map[Setting]Figures{a.Default: first[0]}
	a.Best = a.Default
	all := dimensions(p.Options, &a.Default)
	for round := range 2 {
		begin := a.Best
		for _, d := range all {
			if d.field == "maxReplicas" && known[a.Best].AtMaximumMinutes == 0 {
				continue // a higher one would change nothing
			}
			if round == 0 {
				a.Fields = append(a.Fields, d.field)
			}
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
				tried = append(tried, Row{c, figures[i]})
			}
			for _, c := range candidates {
				if a.rank(known[c], first[0]) < a.rank(known[a.Best], first[0]) {
					a.Best = c
				}
			}
		}
		if a.Best == begin {
			break
		}
	}
	a.Tried, a.Trades = len(tried), unbeaten(tried)
	a.Tuned = Comparison{known[a.Default], known[a.Best]}
	return nil
}

// unbeaten returns the rows that no other one beats, by their pod-hours. Of equal ones the first stays.
func unbeaten(all []Row) (out []Row) {
	for i, row := range all {
		beaten := slices.ContainsFunc(all, func(o Row) bool { return o.beats(row.Figures) })
		equalled := slices.ContainsFunc(all[:i], func(o Row) bool {
			return o.AboveThresholdMinutes == row.AboveThresholdMinutes && o.PodHours() == row.PodHours()
		})
		if !beaten && !equalled {
			out = append(out, row)
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int { return cmp.Compare(a.PodHours(), b.PodHours()) })
	return out
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

// Changes returns what settings change.
func (a *Advice) Changes(to *Setting) []Change {
	var out []Change
	add := func(field, from, to string) {
		if from != to {
			out = append(out, Change{field, from, to})
		}
	}
	from := &a.Default
	add("threshold", quantity(a.inUnits(from)), quantity(a.inUnits(to)))
	add("lateness", percentage(from.Params.Lateness), percentage(to.Params.Lateness))
	add("minReplicas", strconv.Itoa(from.Min), strconv.Itoa(to.Min))
	add("maxReplicas", strconv.Itoa(from.Max), strconv.Itoa(to.Max))
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

// percentage writes a share as lateness has it.
func percentage(share float64) string { return strconv.FormatFloat(100*share, 'g', 6, 64) + "%" }

// AdviceFile is the name of the file with the YAML to apply.
const AdviceFile = "advice.yaml"

// YAML is a merge patch of a PredictedMetric with what is advised; empty if nothing is.
func (a *Advice) YAML() string {
	if !a.Holds() {
		return ""
	}
	spec := map[string]any{}
	for _, c := range a.Changes(&a.Best) {
		var value any = c.To
		if n, err := strconv.Atoi(c.To); err == nil && strings.HasSuffix(c.Field, "Replicas") {
			value = n
		}
		spec[c.Field] = value
	}
	text, err := yaml.Marshal(map[string]any{"spec": spec})
	if err != nil {
		panic(err) // of maps of strings and numbers
	}
	return string(text)
}

// Verdict says in one sentence whether to change the settings.
func (a *Advice) Verdict() string {
	const elsewhere = "on traffic that the search did not use"
	switch {
	case a.Best == a.Default && a.Prices != nil:
		return "Verdict: keep the settings. No other ones cost less."
	case a.Best == a.Default:
		return "Verdict: keep the settings. No other ones have less time above the threshold for as few pod-hours, or fewer pod-hours for as little time."
	case a.Holds():
		return fmt.Sprintf("Verdict: change the settings: %s that is %s.", elsewhere, a.compared(a.Judged))
	default:
		return fmt.Sprintf("Verdict: keep the settings. The best others would not be worth it: %s that is %s.",
			elsewhere, a.compared(a.Judged))
	}
}

// HowToApply says what to do with the YAML.
func (a *Advice) HowToApply() string {
	text := fmt.Sprintf("Save it as %s, as --out does, and apply it with: kubectl patch predictedmetric NAME --type merge --patch-file %s", AdviceFile, AdviceFile)
	var too []string
	for _, c := range a.Changes(&a.Best) {
		switch c.Field {
		case "threshold":
			too = append(too, "target.averageValue to "+c.To)
		case "minReplicas", "maxReplicas":
			too = append(too, c.Field+" to "+c.To)
		}
	}
	if len(too) > 0 {
		text += fmt.Sprintf("\nIn an HPA of your own that reads predicted_load_total set %s too.",
			strings.Join(too, ", "))
	}
	return text
}

// Reasons say what was tried and how the best settings did.
func (a *Advice) Reasons() []string {
	tried := fmt.Sprintf("Tried: %d settings of %s on the first %.0f%% of the trace (%.1f h of it). "+
		"Time is counted above %g whatever they aim at.",
		a.Tried, strings.Join(a.Fields, ", "), 100*tunedShare, a.Tuned.Best.Hours(), a.Default.Target)
	if p := a.Prices; p != nil {
		tried += fmt.Sprintf(" A pod costs %s an hour, and a minute above the threshold %s.", p.Text(p.PodHour),
			p.Text(p.Minute))
	} else {
		tried += " Without prices a change is advised only if it costs neither pod-hours nor time above the threshold; --pod-price and --minute-price weigh one against the other."
	}
	if a.Best == a.Default {
		return []string{tried}
	}
	return []string{tried, fmt.Sprintf("Best: %s. There that is %s.", a.changed(&a.Best), a.compared(a.Tuned))}
}

// changed lists what settings change.
func (a *Advice) changed(to *Setting) string {
	var out []string
	for _, c := range a.Changes(to) {
		out = append(out, fmt.Sprintf("%s: %s instead of %s", c.Field, c.To, c.From))
	}
	return strings.Join(out, ", ")
}

// compared says what the best settings change: costs where there are prices, else minutes and pod-hours.
func (a *Advice) compared(c Comparison) string {
	d, b := c.Default, c.Best
	if p := a.Prices; p != nil {
		perDay := func(f Figures) float64 { return f.Bill(p) * 24 / f.Hours() }
		return fmt.Sprintf("%s a day instead of %s (%s)", p.Text(perDay(b)), p.Text(perDay(d)),
			cmp.Or(report.More(leftOf(b.Bill(p), d.Bill(p)), 1, "less"), "as much"))
	}
	return fmt.Sprintf("%.1f minutes above the threshold instead of %.1f, and %.1f pod-hours instead of %.1f",
		b.AboveThresholdMinutes, d.AboveThresholdMinutes, b.PodHours(), d.PodHours())
}

// trades returns a table of what other settings would have had; nil where prices have decided, or
// if there is no choice.
func (a *Advice) trades() *report.Table {
	if a.Prices != nil || len(a.Trades) < 2 {
		return nil
	}
	out := report.NewTable("on the first part of the trace", "above the threshold, min", "pod-hours")
	out.Right = true
	for _, row := range a.Trades {
		name := a.changed(&row.Setting)
		if row.Setting == a.Default {
			name = "as it is set"
		}
		out.Add(name, report.Decimal(row.AboveThresholdMinutes, 1), report.Decimal(row.PodHours(), 1))
	}
	return out
}

// duration writes a span without zeros at its end, in days to a tenth from two of them on.
func duration(d time.Duration) string {
	if days := d.Hours() / 24; days >= 2 {
		return fmt.Sprintf("%g days", math.Round(10*days)/10)
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
