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
)

// explanation describes the figures, a paragraph a line.
func explanation() []string {
	return []string{
		"As it ran is what the target's replicas were, whoever set them. All else is simulated on the same load.",
		"Too few pods: time in which ready pods had more load each than the threshold, though the target could have had more of them. At the maximum: the target was at its maximum, and had more load than that many pods hold.",
		"Pod-hours: replicas that were ordered, ready or not.",
		"Intervals (95%) say how far a sum would vary if the time had been made up of other hours such as these. Where that of a difference includes 0 there is no difference that can be told.",
	}
}

// WriteText writes reports for a terminal.
func WriteText(w io.Writer, all []*Report) error {
	var b bytes.Buffer
	if rows := summary(all); rows != nil {
		columns(&b, "", rows)
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

// summary has a line for each of several reports, of their longest span, and their headings; nil of one report.
func summary(all []*Report) [][]string {
	if len(all) < 2 {
		return nil
	}
	out := [][]string{{"", "too few pods, min", "with an HPA", "at the maximum, min", "pod-hours", "with an HPA", "known"}}
	for _, r := range all {
		s := slices.MaxFunc(r.Spans, func(a, b Span) int { return cmp.Compare(a.Hours, b.Hours) })
		line := []string{r.Namespace + "/" + r.Name, "-", "-", "-", "-", "-", percent(s.KnownHours / s.Hours)}
		if ran := s.row(""); ran != nil {
			line[1], line[3], line[4] = bare(ran.TooFewMinutes.Value), bare(ran.AtMaximumMinutes.Value), bare(ran.PodHours.Value)
		}
		if hpa := s.row(hpaScaler); hpa != nil {
			line[2], line[5] = interval(hpa.TooFewMinutes, bare), bare(hpa.PodHours.Value)
		}
		out = append(out, line)
	}
	return out
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
	if len(s.Rows) > 0 {
		fmt.Fprintln(b)
		s.table(b)
	}
	for _, line := range s.details() {
		fmt.Fprintln(b, "  "+line)
	}
}

// header is that of the table of rows.
var header = []string{"", "too few pods, min", "of time", "at the maximum, min", "pod-hours", "ups", "downs", "than Foresail, min", "than Foresail, pod-hours"}

func (s *Span) table(b *bytes.Buffer) {
	rows := [][]string{header}
	for _, row := range s.Rows {
		rows = append(rows, row.cells())
	}
	columns(b, "  ", rows)
}

// columns writes rows with their cells below each other.
func columns(b *bytes.Buffer, indent string, rows [][]string) {
	var aligned strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, indent+strings.Join(row, "\t"))
	}
	t.Flush()
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
}

// cells are those of a row of the table.
func (r *Row) cells() []string {
	minutesMore, podsMore := "", ""
	if d := r.ThanForesail; d != nil {
		minutesMore, podsMore = signed(d.TooFewMinutes, bare), signed(d.PodHours, bare)
	}
	tooFew := bare(r.TooFewMinutes.Value)
	if r.Scaler != "" {
		tooFew = interval(r.TooFewMinutes, bare)
	}
	return []string{
		r.Title, tooFew, percent(r.TooFewShare), bare(r.AtMaximumMinutes.Value), bare(r.PodHours.Value), bare(r.ScaleUps), bare(r.ScaleDowns),
		minutesMore, podsMore,
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
		parts = append(parts, fmt.Sprintf("its error was %.2f of that of taking the present load to stay", *v))
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
