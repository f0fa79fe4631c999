package evaluation

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/lab/report/page"
)

// explanation describes the figures, a paragraph a line.
func explanation() []string {
	return []string{
		"As it ran is what the target's replicas were, whatever set them. All else is simulated on the same load.",
		"Too few pods: time in which ready pods had more load each than the threshold, though the target could have had more of them. At the maximum: the target was at its maximum, and had more load than that many pods hold.",
		"Pod-hours: replicas that were ordered, ready or not.",
		"Intervals (95%) say how far a sum would vary if the time had been made up of other hours such as these. Where that of a difference includes 0 there is no difference that can be told.",
	}
}

// WriteText writes reports for a terminal.
func WriteText(w io.Writer, all []*Report) error {
	var b bytes.Buffer
	if t := summary(all); t != nil {
		writeTable(&b, "", t)
		fmt.Fprintln(&b)
	}
	for _, r := range all {
		r.text(&b)
	}
	for _, line := range explanation() {
		fmt.Fprintln(&b, line)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// summary returns a table with a line for each of several reports, of their longest span; nil of one report.
func summary(all []*Report) *page.Table {
	if len(all) < 2 {
		return nil
	}
	t := &page.Table{Head: []string{"", "too few pods, min", "with an HPA", "at the maximum, min", "pod-hours", "with an HPA", "known"}}
	prices := all[0].Spans[0].prices
	if prices != nil {
		t.Head = append(t.Head, "cost, "+prices.Currency, "with an HPA")
	}
	for _, r := range all {
		s := slices.MaxFunc(r.Spans, func(a, b Span) int { return cmp.Compare(a.Hours, b.Hours) })
		ran, hpa := s.row(""), s.row(hpaScaler)
		of := func(row *Row, cell func() page.Cell) page.Cell {
			if row == nil {
				return page.Cell{Text: "-"}
			}
			return cell()
		}
		cells := []page.Cell{
			{Text: r.Namespace + "/" + r.Name},
			of(ran, func() page.Cell { return page.Cell{Text: bare(ran.TooFewMinutes.Value)} }),
			of(hpa, func() page.Cell { return cell(hpa.TooFewMinutes, bare) }),
			of(ran, func() page.Cell { return page.Cell{Text: bare(ran.AtMaximumMinutes.Value)} }),
			of(ran, func() page.Cell { return page.Cell{Text: bare(ran.PodHours.Value)} }),
			of(hpa, func() page.Cell { return page.Cell{Text: bare(hpa.PodHours.Value)} }),
			{Text: percent(s.KnownHours / s.Hours)},
		}
		if prices != nil {
			cells = append(cells, of(ran, func() page.Cell { return page.Cell{Text: prices.Amount(ran.Cost.Value)} }),
				of(hpa, func() page.Cell { return cell(*hpa.Cost, prices.Amount) }))
		}
		t.Rows = append(t.Rows, page.Row{Cells: cells})
	}
	return t
}

func (r *Report) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "PredictedMetric %s/%s (%s), threshold %s\n", r.Namespace, r.Name, r.Target, r.Threshold)
	for i := range r.Spans {
		r.Spans[i].text(b)
	}
	if r.Unsimulated != "" {
		fmt.Fprintf(b, "\nWhat others would have done is not known: %s.\n", r.Unsimulated)
	}
	fmt.Fprintf(b, "\n%s\n", r.resolution())
	for _, note := range r.Notes {
		fmt.Fprintln(b, note)
	}
	fmt.Fprintln(b)
}

// resolution is what the record cannot show.
func (r *Report) resolution() string {
	of := "1 replica"
	if r.Replicas != 1 {
		of = fmt.Sprintf("%d replicas", r.Replicas)
	}
	return fmt.Sprintf("Recorded every %s by %s of Foresail, from a smoothed load: what rose and fell within less is in no figure.", r.Recorded, of)
}

const shownTime = "2006-01-02 15:04"

func (s *Span) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nThe last %s, to %s UTC\n", longSpan(s.Name), s.To.UTC().Format(shownTime))
	for _, line := range s.Verdict {
		fmt.Fprintln(b, "  "+line)
	}
	if t := s.table(); t != nil {
		fmt.Fprintln(b)
		writeTable(b, "  ", t)
	}
	for _, line := range s.details() {
		fmt.Fprintln(b, "  "+line)
	}
}

// column is one of the table of rows.
type column struct {
	head string
	of   func(*Row) page.Cell
}

// columns returns those of the table. There is time at the maximum, and money, only where there is any.
func (s *Span) columns() []column {
	plain := func(head string, of func(*Row) string) column {
		return column{head, func(r *Row) page.Cell { return page.Cell{Text: of(r)} }}
	}
	than := func(head string, of func(*Difference) *Estimate, format func(float64) string) column {
		return column{head, func(r *Row) page.Cell {
			if r.ThanForesail == nil {
				return page.Cell{}
			}
			e := of(r.ThanForesail)
			c := cell(*e, format)
			if e.Value >= 0 {
				c.Text = "+" + c.Text
			}
			return c
		}}
	}
	out := []column{
		plain("", func(r *Row) string { return r.Title }),
		{"too few pods, min", func(r *Row) page.Cell {
			if r.Scaler == "" { // happened, and is no estimate
				return page.Cell{Text: bare(r.TooFewMinutes.Value)}
			}
			return cell(r.TooFewMinutes, bare)
		}},
	}
	if !s.littleKnown() {
		out = append(out, plain("of time", func(r *Row) string { return percent(r.TooFewShare) }))
	}
	if s.atMaximum() {
		out = append(out, plain("at the maximum, min", func(r *Row) string { return bare(r.AtMaximumMinutes.Value) }))
	}
	out = append(out, plain("pod-hours", func(r *Row) string { return bare(r.PodHours.Value) }))
	if p := s.prices; p != nil {
		out = append(out, plain("cost, "+p.Currency, func(r *Row) string { return p.Amount(r.Cost.Value) }))
	}
	out = append(out,
		plain("scale-ups", func(r *Row) string { return bare(r.ScaleUps) }),
		plain("scale-downs", func(r *Row) string { return bare(r.ScaleDowns) }),
		than("min more than Foresail", func(d *Difference) *Estimate { return &d.TooFewMinutes }, bare),
		than("pod-hours more", func(d *Difference) *Estimate { return &d.PodHours }, bare),
	)
	if p := s.prices; p != nil {
		out = append(out, than("cost more, "+p.Currency, func(d *Difference) *Estimate { return d.Cost }, p.Amount))
	}
	return out
}

// atMaximum reports whether there was any time at the maximum.
func (s *Span) atMaximum() bool {
	return slices.ContainsFunc(s.Rows, func(r Row) bool { return r.AtMaximumMinutes.Value > 0 })
}

// table returns the rows as a table, nil without any.
func (s *Span) table() *page.Table {
	if len(s.Rows) == 0 {
		return nil
	}
	t, columns := &page.Table{}, s.columns()
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for i := range s.Rows {
		row := page.Row{Marked: s.Rows[i].Scaler == ""}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.of(&s.Rows[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// cell returns an estimate with its interval.
func cell(e Estimate, format func(float64) string) page.Cell {
	c := page.Cell{Text: format(e.Value)}
	if e.Low != nil {
		c.Interval = format(*e.Low) + " to " + format(*e.High)
	}
	return c
}

// writeTable writes a table with its cells below each other.
func writeTable(b *bytes.Buffer, indent string, t *page.Table) {
	var aligned strings.Builder
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, indent+strings.Join(t.Head, "\t"))
	for _, row := range t.Rows {
		texts := make([]string, len(row.Cells))
		for i, c := range row.Cells {
			texts[i] = c.String()
		}
		fmt.Fprintln(w, indent+strings.Join(texts, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
}

// details are of the forecast and of what is not known.
func (s *Span) details() []string {
	out := []string{s.Forecast.text()}
	out = append(out, fmt.Sprintf("Known: %s of %s (%s).", hoursText(s.KnownHours), hoursText(s.Hours), percent(s.KnownHours/s.Hours)))
	for _, g := range s.Gaps {
		out = append(out, fmt.Sprintf("Missing from %s for %s: %s.", g.From.UTC().Format(shownTime), roughly(g.To.Sub(g.From)), g.Missing))
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
		parts = append(parts, fmt.Sprintf("its error was %.2f times that of assuming that the load stays as it is", *v))
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
