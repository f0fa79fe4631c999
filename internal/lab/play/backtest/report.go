package backtest

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/scaler"
)

// Report returns what was played and what it comes to: each scaler, the advice, and how good the
// forecasts were.
func (r *Result) Report() *report.Report {
	out := &report.Report{Name: "Backtest of " + r.Options.Trace.Name}
	out.Show(report.Title, "Would Foresail help? "+out.Name)
	out.Say(report.Quiet, r.assumptions()...)
	out.Keys(r.keys()...)
	out.Say(report.Finding, findings{r}.all()...)
	r.reportScalers(out)
	if r.Advice != nil {
		r.Advice.report(out)
	}
	r.reportCharts(out)
	all := forecastsOf(r.Summary)
	out.Sheet("forecast", r.forecastSheet(all))
	if len(all) > 0 {
		out.Show(report.Section, "How good the forecast is")
		out.ShowTable(report.TableOf(forecastColumns, all, func(f Forecast) bool { return isOurs(f.Name) }))
		out.Show(report.Quiet, forecastLegend)
	}
	out.Show(report.Section, "How this was found")
	out.Show(report.Quiet, r.method(), r.names())
	return out
}

// assumptions describe what was played, one sentence a line.
func (r *Result) assumptions() []string {
	o := r.Options
	capacity := fmt.Sprintf("A pod handles %.4g requests/s", o.Capacity)
	if o.CapacityDerived {
		capacity += fmt.Sprintf(" (derived, so that the trace's 99th percentile takes half of %d pods; "+
			"give --capacity for figures of your own)", o.Max)
	}
	return []string{
		fmt.Sprintf("%s: %s from %s, one value every %s, at most %.4g requests/s.", o.Trace.Name,
			duration(o.Trace.Length()), o.Trace.Start.Format("2006-01-02 15:04:05 UTC"), duration(o.Trace.Step),
			o.Trace.Largest()),
		fmt.Sprintf("%s and takes %s to start. %d to %d pods; threshold %g.",
			capacity, duration(o.Startup), o.Min, o.Max, o.Threshold),
	}
}

// keys returns the figures that the page begins with.
func (r *Result) keys() (out []report.Key) {
	a, hasOurs := r.Summary.of(ours)
	b, hasRival := r.Summary.of(rival)
	if !hasOurs || !hasRival {
		return nil
	}
	add := func(name string, text func(Row) string) {
		name += " with " + scaler.Title(ours)
		out = append(out, report.Key{Name: name, Value: text(a), Against: "an HPA: " + text(b)})
	}
	add("Above the threshold", func(row Row) string { return report.Decimal(row.AboveThresholdMinutes, 1) + " min" })
	add("Pod-hours", func(row Row) string { return report.Decimal(row.PodHours(), 1) })
	if p := r.Options.Prices; p != nil {
		add("Cost", func(row Row) string { return p.Text(row.Bill(p)) })
	}
	return out
}

// reportScalers adds what each scaler would have done.
func (r *Result) reportScalers(out *report.Report) {
	printed := report.TableOf(r.columns(true), r.Summary, nil)
	printed.Right = true
	out.Print("")
	out.PrintTable(printed)
	out.Show(report.Section, "What each autoscaler would have done")
	out.ShowTable(report.TableOf(r.columns(false), r.Summary, func(row Row) bool { return isOurs(row.Scaler) }))
	out.Show(report.Quiet, r.legend())
	out.Sheet("summary", r.summarySheet())
}

// columns returns those of the table of scalers, with short heads on a terminal. There is time at
// the maximum, and money, only where there is any.
func (r *Result) columns(terminal bool) []report.Column[Row] {
	head := func(long, short string) string {
		if terminal {
			return short
		}
		return long
	}
	out := []report.Column[Row]{
		report.Text("", func(row Row) string {
			title := scaler.Title(row.Scaler)
			return head(title, fmt.Sprintf("%s (%s)", title, row.Scaler))
		}),
		report.Number(head("above the threshold, minutes", "above threshold min"), 1,
			func(row Row) float64 { return row.AboveThresholdMinutes }),
		report.Text(head("of the time", "of time"),
			func(row Row) string { return report.Percent(row.AboveThresholdShare(), 2) }),
	}
	if r.atMaximum() {
		out = append(out, report.Number(head("part of it at the maximum, minutes", "at maximum min"), 1,
			func(row Row) float64 { return row.AtMaximumMinutes }))
	}
	out = append(out,
		report.Number(head("overloaded, minutes", "saturated min"), 1,
			func(row Row) float64 { return row.SaturatedMinutes }),
		report.Number("pod-hours", 1, func(row Row) float64 { return row.PodHours() }),
		report.Number(head("pods, on average", "pods"), 2, func(row Row) float64 { return row.MeanPods() }),
	)
	if p := r.Options.Prices; p != nil {
		out = append(out, report.Text(head("cost, ", "cost ")+p.Currency,
			func(row Row) string { return p.Amount(row.Bill(p)) }))
	}
	return append(out,
		report.Number(head("changes of the number of pods", "changes"), 0,
			func(row Row) float64 { return row.Actions }),
		report.Number(head("of them taken back soon", "taken back"), 0,
			func(row Row) float64 { return row.Reversals }),
		report.Number(head("error of the forecast", "forecast error"), 2,
			func(row Row) float64 { return row.Forecast.MASE() }),
	)
}

// atMaximum reports whether there was any time at the maximum.
func (r *Result) atMaximum() bool {
	return slices.ContainsFunc(r.Summary, func(row Row) bool { return row.AtMaximumMinutes > 0 })
}

// legend explains the columns of scalers.
func (r *Result) legend() string {
	o := r.Options
	all := []string{fmt.Sprintf("Above the threshold: time in which a ready pod had more load than %v "+
		"of what it can do, so that users begin to wait.", o.Threshold)}
	if r.atMaximum() {
		all = append(all, fmt.Sprintf("At the maximum: the part of it in which there were as many pods "+
			"as there may be (%d) under more load than that many hold, so that only a higher maximum helps.", o.Max))
	}
	all = append(all, "Overloaded: time with more load than ready pods can do at all.",
		"Pod-hours: one pod for one hour, ready or not, which is what you pay for.")
	if p := o.Prices; p != nil {
		all = append(all, fmt.Sprintf("Cost: %s for a pod-hour and %s for a minute above the threshold.",
			p.Text(p.PodHour), p.Text(p.Minute)))
	}
	all = append(all, "Taken back soon: changes within five minutes of one in the other direction.",
		"Error of the forecast: as a multiple of the error of assuming that the load stays as it is; "+
			"below 1 is better.")
	for _, row := range r.Summary { // scalers that know more than a real one can
		switch row.Scaler {
		case "clairvoyant":
			all = append(all, "The best possible is a bound: it knows the future, and no autoscaler reaches it.")
		case "instant", "instant/hpa-defaults":
			all = append(all, fmt.Sprintf("What %s is a bound as well: it reads that without error or delay.",
				scaler.Title(row.Scaler)))
		}
	}
	return strings.Join(all, " ")
}

// report adds the advice.
func (a *Advice) report(out *report.Report) {
	out.Print("", "Advice")
	out.Show(report.Section, "Advice")
	out.Say(report.Finding, a.Verdict())
	if text := a.YAML(); text != "" {
		out.Print("", strings.TrimSuffix(text, "\n"), "", a.HowToApply(), "")
		out.Show(report.Code, text)
		out.File(AdviceFile, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	out.Say(report.Plain, a.Reasons()...)
	if trades := a.trades(); trades != nil {
		out.Print("")
		out.Table(trades)
	}
}

// reportCharts adds the frontier and the timeline.
func (r *Result) reportCharts(out *report.Report) {
	if len(r.Frontier) == 0 {
		return
	}
	frontier, timeline := frontierChart(r), timelineChart(r)
	sampled := ""
	if r.Sampled() {
		sampled = ", taken from all over the traffic"
	}
	out.Figure(frontier)
	out.Show(report.Quiet, fmt.Sprintf("Whatever an autoscaler aims at, time is counted above the threshold "+
		"of %v. Played on %s hours%s.",
		r.Options.Threshold, report.Decimal(r.FrontierHours, 1), sampled))
	out.Figure(timeline)
	out.Sheet("frontier", r.frontierSheet())
	out.Chart("frontier", frontier)
	out.Chart("timeline", timeline)
}

var forecastColumns = []report.Column[Forecast]{
	report.Text("way to forecast", func(f Forecast) string { return cmp.Or(scaler.Title(f.Name), f.Name) }),
	report.Number("seconds ahead", 0, func(f Forecast) float64 { return f.Horizon.Seconds() }),
	report.Number("error, pods", 3, func(f Forecast) float64 { return f.Error.Second }),
	report.Number("against assuming that the load stays", 2, func(f Forecast) float64 { return f.Scaled.Second }),
	report.Number("the same, without chance", 2, func(f Forecast) float64 { return f.Scaled.Rate }),
	report.Number("Foresail's error against this one's", 2, func(f Forecast) float64 { return f.Ours.Rate }),
	percents("too few pods ordered, of the time", func(f Forecast) float64 { return f.Late }),
	percents("the same, after six hours", func(f Forecast) float64 { return f.LateLearned }),
}

func percents(head string, of func(Forecast) float64) report.Column[Forecast] {
	return report.Text(head, func(f Forecast) string { return report.OrDash(report.Percent(of(f), 2)) })
}

const forecastLegend = "Measured at each decision, against the load that then came. " +
	"Without chance means against the mean load of 21 seconds, as the load of a single one is partly chance. " +
	"The ways that cost nothing see what Foresail sees, and look as far ahead; " +
	"those of other days are compared where the traffic goes back that far. " +
	"Too few pods ordered: the share of the time in which the ordered pods were too few for the load that came, " +
	"and the maximum allowed for more; " +
	"after six hours, the same without the first six hours, of which Foresail knew little."

// method describes how pods and scalers are simulated.
func (r *Result) method() string {
	o := r.Options
	arrive := "Requests arrive at random, as many as the traffic has on average, " +
		"which runs straight from value to value"
	if o.exact() {
		arrive = "The traffic counts seconds, so that as many requests arrive as it says"
	}
	played := "were"
	if len(o.Seeds) == 1 {
		played = "was"
	}
	text := fmt.Sprintf("Pods are alike and take %s requests/s each. "+
		"A pod is ready %s after it was ordered, give or take 15%%, and has its full share at once. "+
		"%s; what a pod cannot do waits, ten seconds of work at most; what is beyond that is lost. "+
		"HPAs look each 15 s. "+
		"Foresail's HPA has the behavior that is recommended for forecasts: "+
		"up without tolerance and by up to 400%% in 15 s, down after 30 s. "+
		"An HPA's default behavior ignores 10%%, at most doubles the pods or adds four, "+
		"and keeps them for five minutes. "+
		"%s %s played, from %d on; the same seeds give the same figures.",
		strings.TrimSuffix(report.Decimal(o.Capacity, 2), ".00"), o.Startup, arrive,
		report.Count(len(o.Seeds), "seed"), played, o.Seeds[0])
	if r.Advice != nil {
		text += fmt.Sprintf(" Settings are searched on the first %.0f%% of the traffic, "+
			"and judged on what comes after.", 100*tunedShare)
	}
	return text
}

// names lists the names of scalers in files and flags.
func (r *Result) names() string {
	var all []string
	for _, row := range r.Summary {
		all = append(all, fmt.Sprintf("%s (%s)", row.Scaler, scaler.Title(row.Scaler)))
	}
	return fmt.Sprintf("In files, and for --scalers, the names are %s.", strings.Join(all, ", "))
}

// summarySheet has a line for each scaler.
func (r *Result) summarySheet() [][]string {
	d := report.Decimal
	rows := [][]string{{
		"trace", "scaler", "above_threshold_minutes", "saturated_minutes", "pod_hours", "under_s", "over_s",
		"actions", "reversals", "mase", "momentary_minutes", "sudden_minutes",
	}}
	for _, row := range r.Summary {
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, d(row.AboveThresholdMinutes, 2), d(row.SaturatedMinutes, 2),
			d(row.PodHours(), 2), d(row.UnderSeconds, 1), d(row.OverSeconds, 1), d(row.Actions, 1), d(row.Reversals, 1),
			d(row.Forecast.MASE(), 3), d(row.Abrupt.MomentaryMinutes, 2), d(row.Abrupt.SuddenMinutes, 2),
		})
	}
	return rows
}

// frontierSheet has a line for each scaler and target. One column interpolates how long the rival
// would be above the threshold for the same pods; it is empty beyond the targets that were tried.
func (r *Result) frontierSheet() [][]string {
	d := report.Decimal
	rows := [][]string{{
		"trace", "scaler", "target", "hours", "above_threshold_minutes", "saturated_minutes", "pod_hours",
		rival + "_minutes_at_same_pods", "momentary_minutes", "sudden_minutes",
	}}
	for _, row := range r.Frontier {
		same, ok := r.Frontier.read(rival, row.MeanPods(), Figures.MeanPods,
			func(f Figures) float64 { return f.AboveThresholdMinutes })
		if !ok || row.Scaler == rival {
			same = math.NaN()
		}
		rows = append(rows, []string{
			r.Options.Trace.Name, row.Scaler, d(row.Target, 3), d(row.Hours(), 2),
			d(row.AboveThresholdMinutes, 2), d(row.SaturatedMinutes, 2), d(row.PodHours(), 2), d(same, 2),
			d(row.Abrupt.MomentaryMinutes, 2), d(row.Abrupt.SuddenMinutes, 2),
		})
	}
	return rows
}

// forecastSheet has a line for each way to forecast.
func (r *Result) forecastSheet(all []Forecast) [][]string {
	d := report.Decimal
	rows := [][]string{{
		"trace", "forecast", "horizon_s", "mean_error_pods", "mase", "mean_error_of_rate_pods", "mase_of_rate",
		"foresail_by_it", "foresail_by_it_of_rate", "late_share", "late_share_after_6h", "pinball_pods",
	}}
	for _, f := range all {
		rows = append(rows, []string{
			r.Options.Trace.Name, f.Name, d(f.Horizon.Seconds(), 1), d(f.Error.Second, 4), d(f.Scaled.Second, 3),
			d(f.Error.Rate, 4), d(f.Scaled.Rate, 3), d(f.Ours.Second, 3), d(f.Ours.Rate, 3), d(f.Late, 4),
			d(f.LateLearned, 4), d(f.Pinball, 5),
		})
	}
	return rows
}
