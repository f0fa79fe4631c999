package evaluation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/lab/report"
)

const shownTime = "2006-01-02 15:04"

// ReportOn returns a report on results, which begins with a table of all where there are several.
func ReportOn(all []*Result) *report.Report {
	out := &report.Report{Name: "Is Foresail worth it?"}
	out.Show(report.Title, out.Name)
	if len(all) > 1 {
		out.Table(summary(all))
		out.Print("")
	}
	for _, r := range all {
		r.report(out)
	}
	out.Say(report.Quiet,
		"As it ran is what the target's replicas were, whatever set them. All else is simulated on the same load.",
		"Too few pods: time in which ready pods had more load each than the threshold, "+
			"though the target could have had more of them. "+
			"At the maximum: the target was at its maximum, and had more load than that many pods hold.",
		"Pod-hours: replicas that were ordered, ready or not.",
		"Intervals (95%) say how far a sum would vary if the time had been made up of other hours such as these. "+
			"Where that of a difference includes 0 there is no difference that can be told.")
	return out
}

// summary returns a table with a line for each result, of its longest span.
func summary(all []*Result) *report.Table {
	prices := all[0].Spans[0].prices
	t := report.NewTable("", "too few pods, min", "with an HPA", "at the maximum, min", "pod-hours", "with an HPA",
		"known")
	if prices != nil {
		t.Head = append(t.Head, "cost, "+prices.Currency, "with an HPA")
	}
	for _, r := range all {
		s := slices.MaxFunc(r.Spans, func(a, b Span) int { return cmp.Compare(a.Hours, b.Hours) })
		ran, hpa := s.row(""), s.row(hpaScaler)
		of := func(row *Row, cell func(*Row) report.Cell) report.Cell {
			if row == nil {
				return report.Cell{Text: "-"}
			}
			return cell(row)
		}
		podHours := func(row *Row) report.Cell { return report.Cell{Text: report.Brief(row.PodHours.Value)} }
		cells := []report.Cell{
			{Text: r.Namespace + "/" + r.Name},
			of(ran, (*Row).tooFew), of(hpa, (*Row).tooFew),
			of(ran, func(row *Row) report.Cell { return report.Cell{Text: report.Brief(row.AtMaximumMinutes.Value)} }),
			of(ran, podHours), of(hpa, podHours),
			{Text: report.BriefPercent(s.KnownHours / s.Hours)},
		}
		if prices != nil {
			cells = append(cells,
				of(ran, func(row *Row) report.Cell { return report.Cell{Text: prices.Amount(row.Cost.Value)} }),
				of(hpa, func(row *Row) report.Cell { return cell(*row.Cost, prices.Amount) }))
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t
}

// report adds one result.
func (r *Result) report(out *report.Report) {
	out.Print(fmt.Sprintf("PredictedMetric %s/%s (%s), threshold %s", r.Namespace, r.Name, r.Target, r.Threshold))
	out.Show(report.Section, r.Namespace+"/"+r.Name)
	out.Show(report.Quiet, fmt.Sprintf("%s, threshold %s", r.Target, r.Threshold))
	for i := range r.Spans {
		r.Spans[i].report(out)
	}
	out.Figure(r.chartPage())
	if r.Unsimulated != "" {
		out.Print("")
		out.Say(report.Plain, fmt.Sprintf("What others would have done is not known: %s.", r.Unsimulated))
	}
	out.Print("")
	out.Say(report.Quiet, fmt.Sprintf("Recorded every %s by %s of Foresail, from a smoothed load: "+
		"what rose and fell within less is in no figure.", r.Recorded, report.Count(r.Replicas, "replica")))
	out.Say(report.Quiet, r.Notes...)
	out.Print("")
}

// report adds one span.
func (s *Span) report(out *report.Report) {
	title := fmt.Sprintf("The last %s, to %s UTC", longSpan(s.Name), s.To.UTC().Format(shownTime))
	out.Print("", title)
	out.Show(report.Topic, title)
	out.Keys(s.keys()...)
	out.Indent = "  "
	defer func() { out.Indent = "" }()
	out.Say(report.Finding, s.Verdict...)
	if len(s.Rows) > 0 {
		out.Print("")
		out.Table(report.TableOf(s.columns(), s.Rows, func(r Row) bool { return r.Scaler == "" }))
	}
	out.Say(report.Quiet, s.details()...)
}

// keys returns the figures that a span begins with: what ran, against an HPA.
func (s *Span) keys() (out []report.Key) {
	ran, hpa := s.row(""), s.row(hpaScaler)
	if ran == nil {
		return nil
	}
	add := func(name string, text func(*Row) string) {
		key := report.Key{Name: name, Value: text(ran)}
		if hpa != nil {
			key.Against = "an HPA: " + text(hpa)
		}
		out = append(out, key)
	}
	add("With too few pods", func(r *Row) string { return minutes(r.TooFewMinutes.Value) })
	if s.atMaximum() {
		add("At the maximum", func(r *Row) string { return minutes(r.AtMaximumMinutes.Value) })
	}
	add("Pod-hours", func(r *Row) string { return report.Brief(r.PodHours.Value) })
	if p := s.prices; p != nil {
		add("Cost", func(r *Row) string { return p.Text(r.Cost.Value) })
	}
	return out
}

// columns returns those of the table of rows. There is time at the maximum, and money, only where
// there is any.
func (s *Span) columns() []report.Column[Row] {
	brief := func(head string, of func(Row) float64) report.Column[Row] {
		return report.Text(head, func(r Row) string { return report.Brief(of(r)) })
	}
	out := []report.Column[Row]{
		report.Text("", func(r Row) string { return r.Title }),
		{Head: "too few pods, min", Of: func(r Row) report.Cell { return r.tooFew() }},
	}
	if !s.littleKnown() {
		out = append(out, report.Text("of time", func(r Row) string { return report.BriefPercent(r.TooFewShare) }))
	}
	if s.atMaximum() {
		out = append(out, brief("at the maximum, min", func(r Row) float64 { return r.AtMaximumMinutes.Value }))
	}
	out = append(out, brief("pod-hours", func(r Row) float64 { return r.PodHours.Value }))
	if p := s.prices; p != nil {
		out = append(out, report.Text("cost, "+p.Currency, func(r Row) string { return p.Amount(r.Cost.Value) }))
	}
	out = append(out,
		brief("scale-ups", func(r Row) float64 { return r.ScaleUps }),
		brief("scale-downs", func(r Row) float64 { return r.ScaleDowns }),
		than("min more than Foresail", func(d *Difference) *Estimate { return &d.TooFewMinutes }, report.Brief),
		than("pod-hours more", func(d *Difference) *Estimate { return &d.PodHours }, report.Brief),
	)
	if p := s.prices; p != nil {
		out = append(out, than("cost more, "+p.Currency, func(d *Difference) *Estimate { return d.Cost }, p.Amount))
	}
	return out
}

// than returns a column of differences from Foresail.
func than(head string, of func(*Difference) *Estimate, format func(float64) string) report.Column[Row] {
	return report.Column[Row]{Head: head, Of: func(r Row) report.Cell {
		if r.ThanForesail == nil {
			return report.Cell{}
		}
		e := of(r.ThanForesail)
		c := cell(*e, format)
		if e.Value >= 0 {
			c.Text = "+" + c.Text
		}
		return c
	}}
}

// tooFew is the time with too few pods. As it ran it happened, and is no estimate.
func (r *Row) tooFew() report.Cell {
	if r.Scaler == "" {
		return report.Cell{Text: report.Brief(r.TooFewMinutes.Value)}
	}
	return cell(r.TooFewMinutes, report.Brief)
}

// atMaximum reports whether there was any time at the maximum.
func (s *Span) atMaximum() bool {
	return slices.ContainsFunc(s.Rows, func(r Row) bool { return r.AtMaximumMinutes.Value > 0 })
}

// cell returns an estimate with its interval.
func cell(e Estimate, format func(float64) string) report.Cell {
	c := report.Cell{Text: format(e.Value)}
	if e.Low != nil {
		c.Interval = format(*e.Low) + " to " + format(*e.High)
	}
	return c
}

// details describe the forecast and the gaps of the record.
func (s *Span) details() []string {
	out := []string{s.Forecast.text(), fmt.Sprintf("Known: %s of %s (%s).",
		hoursText(s.KnownHours), hoursText(s.Hours), report.BriefPercent(s.KnownHours/s.Hours))}
	for _, g := range s.Gaps {
		out = append(out, fmt.Sprintf("Missing from %s for %s: %s.",
			g.From.UTC().Format(shownTime), roughly(g.To.Sub(g.From)), g.Missing))
	}
	if s.MoreGaps > 0 {
		out = append(out, fmt.Sprintf("And %d shorter gaps.", s.MoreGaps))
	}
	return out
}

// roughly writes how long a gap is, as Prometheus does.
func roughly(d time.Duration) string {
	if d >= time.Hour {
		return model.Duration(d.Round(time.Minute)).String()
	}
	return model.Duration(d.Round(time.Second)).String()
}

func (f *Forecast) text() string {
	var parts []string
	if v := f.ErrorRatio; v != nil {
		parts = append(parts,
			fmt.Sprintf("its error was %.2f times that of assuming that the load stays as it is", *v))
	}
	if v := f.LateRatio; v != nil {
		late := fmt.Sprintf("it ordered too few pods for %.2f%% of the time", 100**v)
		if allowed := f.LatenessRatio; allowed != nil && *allowed > 0 {
			late += fmt.Sprintf(", of %.2f%% allowed", 100**allowed)
		}
		parts = append(parts, late)
	}
	if len(parts) == 0 {
		return "Forecast: nothing is recorded of how good it was."
	}
	return "Forecast: " + strings.Join(parts, "; ") + "."
}
