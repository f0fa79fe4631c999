package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/score"
)

// Played is all that was played of a comparison.
type Played struct {
	Result    *Result
	Variants  []Variant // the fitted model first
	Ablations []Ablation
}

// Report returns the tables of a comparison, with all figures or as an overview, and its figures as files.
func (p *Played) Report(all bool) *report.Report {
	out := &report.Report{}
	for i, o := range p.Result.Outcomes {
		if i > 0 {
			out.Print("")
		}
		if all {
			o.reportAll(out)
			continue
		}
		out.Print(o.Profile + " (" + o.averaging() + ")")
		out.PrintTable(o.table(overview))
	}
	if all {
		reportCalibration(p.Result, out)
	}
	p.Result.reportConclusion(out)
	p.Result.sheets(out)
	if len(p.Variants) > 1 {
		reportVariants(out, p.Variants)
	}
	if len(p.Ablations) > 0 {
		reportAblations(out, p.Ablations)
	}
	return out
}

// column is a figure in a table.
type column struct {
	title    string
	decimals int
	figure   score.Figure
}

func newColumn(title string, decimals int, of func(score.Figures) float64) column {
	return column{title, decimals, score.Figure{Name: title, Of: of}}
}

// titled returns the column with another title. Its figure stays the same.
func (c column) titled(title string) column {
	c.title = title
	return c
}

// rounded returns a figure as the column has it.
func (c column) rounded(v float64) string { return report.OrDash(report.Decimal(v, c.decimals)) }

// The columns of tables.
var (
	successRate    = newColumn("SUCCESS %", 2, func(f score.Figures) float64 { return 100 * f.Success })
	mean           = newColumn("MEAN ms", 0, func(f score.Figures) float64 { return f.Mean })
	p50            = newColumn("P50 ms", 0, func(f score.Figures) float64 { return f.P50 })
	p90            = newColumn("P90 ms", 0, func(f score.Figures) float64 { return f.P90 })
	p99            = newColumn("P99 ms", 0, func(f score.Figures) float64 { return f.P99 })
	failed         = newColumn("ERRORS", 0, func(f score.Figures) float64 { return f.Errors })
	dropped        = newColumn("DROPPED", 0, func(f score.Figures) float64 { return f.Dropped })
	podSeconds     = newColumn("POD-SECONDS", 0, func(f score.Figures) float64 { return f.Seconds })
	under          = newColumn("UNDER s", 0, func(f score.Figures) float64 { return f.UnderSeconds })
	short          = newColumn("SHORT pods", 2, func(f score.Figures) float64 { return f.Short() })
	over           = newColumn("OVER s", 0, func(f score.Figures) float64 { return f.OverSeconds })
	spare          = newColumn("SPARE pods", 2, func(f score.Figures) float64 { return f.Spare() })
	aboveThreshold = newColumn("ABOVE THRESHOLD min", 2,
		func(f score.Figures) float64 { return f.AboveThresholdMinutes })
	saturated = newColumn("SATURATED min", 2, func(f score.Figures) float64 { return f.SaturatedMinutes })
	actions   = newColumn("ACTIONS", 1, func(f score.Figures) float64 { return f.Actions })
	reversals = newColumn("REVERSALS", 1, func(f score.Figures) float64 { return f.Reversals })
)

// The columns of each table.
var (
	// users has the figures that users notice, pods the figures of cost.
	users = []column{successRate, mean, p50, p90, p99, failed, dropped}
	pods  = []column{podSeconds, under, short, over, spare, aboveThreshold, saturated, actions, reversals}
	// against has the columns of the comparison with the rival.
	against = []column{
		successRate.titled("SUCCESS points"), mean, p90, p99, failed, dropped, podSeconds, aboveThreshold,
	}
	// overview has the columns that a newcomer needs.
	overview = []column{successRate, p99, dropped, aboveThreshold, podSeconds}
	// ablationColumns have an ablation, ablationDifferences the comparison of its variants with the
	// recommended setting.
	ablationColumns     = []column{successRate, p90, p99, podSeconds, aboveThreshold, reversals}
	ablationDifferences = []column{successRate.titled("difference: SUCCESS points"), podSeconds, aboveThreshold}
)

// reportAll adds all figures of a profile.
func (o Outcome) reportAll(out *report.Report) {
	out.Print(fmt.Sprintf("%s: what users experienced (%s)", o.Profile, o.averaging()))
	out.PrintTable(o.table(users))
	out.Print("", fmt.Sprintf("%s: what it cost", o.Profile))
	out.PrintTable(o.table(pods, o.boundRatio()...))
	if _, ok := o.scaler(Rival); !ok || len(o.Scalers) == 1 {
		return
	}
	out.Print("", fmt.Sprintf("%s: difference from %s, seed by seed (* = the 95%% interval excludes 0)",
		o.Profile, Rival))
	others := slices.DeleteFunc(slices.Clone(o.Scalers), func(s ScalerRuns) bool { return s.Name == Rival })
	columns := []report.Column[ScalerRuns]{nameColumn}
	for _, c := range against {
		columns = append(columns, report.Text(c.title, func(s ScalerRuns) string {
			return interval(o.moreThan(Rival, s, c.figure), c.decimals, true)
		}))
	}
	out.PrintTable(report.TableOf(columns, others, nil))
}

var nameColumn = report.Text("SCALER", func(s ScalerRuns) string { return s.Name })

// table has a line for each scaler. Further columns come after the first figure.
func (o Outcome) table(figures []column, further ...report.Column[ScalerRuns]) *report.Table {
	columns := append([]report.Column[ScalerRuns]{nameColumn}, own(figures)...)
	return report.TableOf(slices.Insert(columns, 2, further...), o.Scalers, nil)
}

// own returns the columns of scalers' own figures.
func own(figures []column) (out []report.Column[ScalerRuns]) {
	for _, c := range figures {
		out = append(out, report.Text(c.title, func(s ScalerRuns) string {
			return interval(s.Interval(c.figure), c.decimals, false)
		}))
	}
	return out
}

// boundRatio returns the column of the ratio to the bound's pod-seconds, if the bound was played.
func (o Outcome) boundRatio() []report.Column[ScalerRuns] {
	bound, ok := o.scaler(Bound)
	if !ok {
		return nil
	}
	return []report.Column[ScalerRuns]{report.Text("TIMES "+Bound+"'s", func(s ScalerRuns) string {
		return interval(score.Ratio(s.Values(podSeconds.figure), bound.Values(podSeconds.figure)), 3, false)
	})}
}

// reportConclusion adds one sentence on what Foresail gains over the rival, what it costs, and how
// far it is from the bound, if both were played.
func (r *Result) reportConclusion(out *report.Report) {
	var gains, bounds []string
	for _, o := range r.Outcomes {
		ours, hasOurs := o.scaler(through)
		rival, hasRival := o.scaler(Rival)
		if !hasOurs || !hasRival {
			continue
		}
		cost := ours.Interval(podSeconds.figure).Mean / rival.Interval(podSeconds.figure).Mean
		gains = append(gains, fmt.Sprintf("%s on %s for %s pod-seconds",
			points(ours, rival), o.Profile, cmp.Or(report.More(cost, 0, "fewer"), "as many")))
		if bound, ok := o.scaler(Bound); ok {
			bounds = append(bounds, fmt.Sprintf("%s on %s", points(bound, ours), o.Profile))
		}
	}
	if len(gains) == 0 {
		return
	}
	text := fmt.Sprintf("Conclusion: compared with %s, the share of requests that %s serves is %s",
		Rival, through, joined(gains))
	if len(bounds) > 0 {
		text += fmt.Sprintf("; with %s, which knows the future, it would be %s", Bound, joined(bounds))
	}
	out.Print("", text+".")
}

// points writes how much more success a scaler has than another, seed by seed, in percentage points.
func points(a, b ScalerRuns) string {
	more := score.Difference(a.Values(successRate.figure), b.Values(successRate.figure))
	text := fmt.Sprintf("%.2f points", math.Abs(more.Mean))
	if !math.IsNaN(more.Half) {
		text = fmt.Sprintf("%.2f ±%.2f points", math.Abs(more.Mean), more.Half)
	}
	switch {
	case report.IsZero(fmt.Sprintf("%.2f", more.Mean)):
		return "the same"
	case !math.IsNaN(more.Half) && !more.Clear():
		return "about the same (" + interval(more, 2, true) + " points)"
	case more.Mean > 0:
		return text + " higher"
	default:
		return text + " lower"
	}
}

func joined(clauses []string) string {
	if n := len(clauses); n > 2 {
		return strings.Join(clauses[:n-1], ", ") + ", and " + clauses[n-1]
	}
	return strings.Join(clauses, " and ")
}

// averaging describes what a figure of a table is.
func (o Outcome) averaging() string {
	seeds := report.Count(len(o.Seeds), "seed")
	if len(o.Seeds) == 1 {
		return seeds
	}
	return "mean ± half the 95% interval over " + seeds
}

// interval returns a mean and half its interval, if that is known.
func interval(i score.Interval, decimals int, signed bool) string {
	text := report.OrDash(report.Decimal(i.Mean, decimals))
	zero := report.IsZero(text)
	if signed && i.Mean > 0 && !zero {
		text = "+" + text
	}
	if half := report.Decimal(i.Half, decimals); half != "" {
		text += " ±" + half
	}
	if signed && i.Clear() && !zero {
		text += " *"
	}
	return text
}

// reportVariants adds the success of each scaler under each model, with its place, and how many
// findings do not survive: pairs of scalers of which one is better without doubt under the fitted
// model, and the other under this one.
func reportVariants(out *report.Report, variants []Variant) {
	sheet := [][]string{{"profile", "scaler", "model", "seeds", "success", "success_half", "place"}}
	for p, fitted := range variants[0].Result.Outcomes {
		t := report.NewTable("SCALER")
		turned := []string{"reversed findings"}
		for _, v := range variants {
			t.Head = append(t.Head, v.Name)
			turned = append(turned, reversed(fitted, v.Result.Outcomes[p]))
		}
		for i, s := range fitted.Scalers {
			row := []string{s.Name}
			for _, v := range variants {
				o := v.Result.Outcomes[p]
				success := o.Scalers[i].Interval(score.Success())
				row = append(row, fmt.Sprintf("%.2f (%d)", 100*success.Mean, placeOf(o, i)))
				sheet = append(sheet, []string{
					o.Profile, s.Name, v.Name, fmt.Sprint(len(o.Seeds)),
					report.Decimal(success.Mean, 6), report.Decimal(success.Half, 6), fmt.Sprint(placeOf(o, i)),
				})
			}
			t.Add(row...)
		}
		t.Add(turned...)
		out.Print("", fmt.Sprintf("%s: success in %% under other models of pods, and place", fitted.Profile))
		out.PrintTable(t)
	}
	out.Sheet("variants", sheet)
}

// reportAblations adds a table for each ablation and profile.
func reportAblations(out *report.Report, all []Ablation) {
	head := []string{"ablation", "profile", "variant", "reference", "seeds"}
	sheet := [][]string{append(head, withDifferences("reference")...)}
	for _, l := range all {
		for _, o := range l.Result.Outcomes {
			reference := o.Scalers[0].Name
			how := fmt.Sprintf("%s; difference from %q", o.averaging(), reference)
			if len(o.Seeds) > 1 {
				how += ", seed by seed"
			}
			out.Print("", fmt.Sprintf("%s, %s: %s (%s)", l.Name, o.Profile, l.Title, how))
			out.PrintTable(report.TableOf(ablationTable(l.Name, o), o.Scalers, nil))
			for _, s := range o.Scalers {
				row := []string{l.Name, o.Profile, s.Name, reference, fmt.Sprint(len(s.Runs))}
				sheet = append(sheet, append(row, o.differences(reference, s)...))
			}
		}
	}
	out.Sheet("ablations", sheet)
}

// ablationTable returns the columns of an ablation: figures, and their differences from the first variant.
func ablationTable(name string, o Outcome) []report.Column[ScalerRuns] {
	columns := append([]report.Column[ScalerRuns]{nameColumn}, own(ablationColumns)...)
	columns[0].Head = strings.ToUpper(name)
	reference := o.Scalers[0].Name
	for _, c := range ablationDifferences {
		columns = append(columns, report.Text(c.title, func(s ScalerRuns) string {
			if s.Name == reference {
				return ""
			}
			return interval(o.moreThan(reference, s, c.figure), c.decimals, true)
		}))
	}
	return columns
}

// sheets adds the files of figures. Their columns are part of the command's interface. Success is a share.
func (r *Result) sheets(out *report.Report) {
	figures := score.Summary()
	summary := [][]string{append([]string{"profile", "scaler", "seeds"}, names(figures)...)}
	intervals := [][]string{append([]string{"profile", "scaler", "seeds"}, withDifferences(Rival)...)}
	seeds := [][]string{append([]string{"profile", "scaler", "seed"}, names(score.All())...)}
	for _, o := range r.Outcomes {
		for _, s := range o.Scalers {
			row := []string{o.Profile, s.Name, fmt.Sprint(len(s.Runs))}
			intervals = append(intervals, append(slices.Clone(row), o.differences(Rival, s)...))
			for _, f := range figures {
				row = append(row, report.Decimal(s.Interval(f).Mean, f.Decimals))
			}
			summary = append(summary, row)
			for _, run := range s.Runs {
				row := []string{o.Profile, s.Name, fmt.Sprint(run.Seed)}
				for _, f := range score.All() {
					row = append(row, report.Decimal(f.Of(run.Figures), f.Decimals))
				}
				seeds = append(seeds, row)
			}
		}
	}
	if len(r.Outcomes) > 0 {
		out.Sheet("summary", summary)
		out.Sheet("intervals", intervals)
		out.Sheet("seeds", seeds)
	}
}

func names(figures []score.Figure) (out []string) {
	for _, f := range figures {
		out = append(out, f.Name)
	}
	return out
}

// withDifferences returns the names of the columns of differences: for each figure its mean, half
// the width of its 95% interval, and the same of how much more it is than the reference's, seed by
// seed.
func withDifferences(reference string) (out []string) {
	for _, f := range score.All() {
		out = append(out, f.Name, f.Name+"_half", f.Name+"_minus_"+reference, f.Name+"_minus_"+reference+"_half")
	}
	return out
}

// differences returns the cells of a scaler in these columns, "" for unknown figures.
func (o Outcome) differences(reference string, s ScalerRuns) (out []string) {
	for _, f := range score.All() {
		own, more := s.Interval(f), o.moreThan(reference, s, f)
		for _, v := range []float64{own.Mean, own.Half, more.Mean, more.Half} {
			out = append(out, report.Decimal(v, f.Decimals))
		}
	}
	return out
}
