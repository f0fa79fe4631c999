package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/foresail/foresail/internal/lab/score"
)

// cell is a column of a table.
type cell struct {
	title    string
	decimals int
	figure   score.Figure
}

func column(title string, decimals int, of func(score.Figures) float64) cell {
	return cell{title, decimals, score.Figure{Name: title, Of: of}}
}

// titled returns the column with another title. Its figure stays the same.
func (c cell) titled(title string) cell {
	c.title = title
	return c
}

// The columns of tables.
var (
	successRate    = column("SUCCESS %", 2, func(f score.Figures) float64 { return 100 * f.Success })
	mean           = column("MEAN ms", 0, func(f score.Figures) float64 { return f.Mean })
	p50            = column("P50 ms", 0, func(f score.Figures) float64 { return f.P50 })
	p90            = column("P90 ms", 0, func(f score.Figures) float64 { return f.P90 })
	p99            = column("P99 ms", 0, func(f score.Figures) float64 { return f.P99 })
	failed         = column("ERRORS", 0, func(f score.Figures) float64 { return f.Errors })
	dropped        = column("DROPPED", 0, func(f score.Figures) float64 { return f.Dropped })
	podSeconds     = column("POD-SECONDS", 0, func(f score.Figures) float64 { return f.Seconds })
	under          = column("UNDER s", 0, func(f score.Figures) float64 { return f.UnderSeconds })
	short          = column("SHORT pods", 2, func(f score.Figures) float64 { return f.Short })
	over           = column("OVER s", 0, func(f score.Figures) float64 { return f.OverSeconds })
	spare          = column("SPARE pods", 2, func(f score.Figures) float64 { return f.Spare })
	aboveThreshold = column("ABOVE THRESHOLD min", 2, func(f score.Figures) float64 { return f.AboveThresholdMinutes })
	saturated      = column("SATURATED min", 2, func(f score.Figures) float64 { return f.SaturatedMinutes })
	actions        = column("ACTIONS", 1, func(f score.Figures) float64 { return f.Actions })
	reversals      = column("REVERSALS", 1, func(f score.Figures) float64 { return f.Reversals })
)

// The columns of each table.
var (
	// users have what users experienced, pods what it cost.
	users = []cell{successRate, mean, p50, p90, p99, failed, dropped}
	pods  = []cell{podSeconds, under, short, over, spare, aboveThreshold, saturated, actions, reversals}
	// against have what is compared with the rival.
	against = []cell{successRate.titled("SUCCESS points"), mean, p90, p99, failed, dropped, podSeconds, aboveThreshold}
	// overview has what a newcomer needs.
	overview = []cell{successRate, p99, dropped, aboveThreshold, podSeconds}
	// ablationColumns have an ablation, ablationDifferences the comparison of its variants with the recommended setting.
	ablationColumns     = []cell{successRate, p90, p99, podSeconds, aboveThreshold, reversals}
	ablationDifferences = []cell{successRate.titled("difference: SUCCESS points"), podSeconds, aboveThreshold}
)

// WriteOverview writes a short table for each profile, and a conclusion.
func (r *Result) WriteOverview(w io.Writer) error {
	var text strings.Builder
	for i, o := range r.Outcomes {
		if i > 0 {
			text.WriteString("\n")
		}
		o.part(&text, o.Profile+" ("+o.averaging()+")", overview, false, func(s ScalerRuns, c cell) score.Interval { return s.Interval(c.figure) })
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return r.WriteConclusion(w)
}

// WriteConclusion writes one sentence on what Foresail gains over the rival, what it costs, and how far it is from the
// bound. It writes nothing if either was not played.
func (r *Result) WriteConclusion(w io.Writer) error {
	var gains, bounds []string
	for _, o := range r.Outcomes {
		ours, hasOurs := o.scaler(through)
		rival, hasRival := o.scaler(Rival)
		if !hasOurs || !hasRival {
			continue
		}
		gains = append(gains, fmt.Sprintf("%s on %s for %s pod-seconds", points(ours, rival), o.Profile, percentMore(ours, rival)))
		if bound, ok := o.scaler(Bound); ok {
			bounds = append(bounds, fmt.Sprintf("%s on %s", points(bound, ours), o.Profile))
		}
	}
	if len(gains) == 0 {
		return nil
	}
	text := fmt.Sprintf("\nConclusion: compared with %s, the share of requests that %s serves is %s", Rival, through, joined(gains))
	if len(bounds) > 0 {
		text += fmt.Sprintf("; with %s, which knows the future, it would be %s", Bound, joined(bounds))
	}
	_, err := io.WriteString(w, text+".\n")
	return err
}

// points writes how much more success a scaler has than another, seed by seed, in percentage points.
func points(a, b ScalerRuns) string {
	more := score.Difference(a.Values(successRate.figure), b.Values(successRate.figure))
	text := fmt.Sprintf("%.2f points", math.Abs(more.Mean))
	if !math.IsNaN(more.Half) {
		text = fmt.Sprintf("%.2f ±%.2f points", math.Abs(more.Mean), more.Half)
	}
	switch {
	case isZero(fmt.Sprintf("%.2f", more.Mean)):
		return "the same"
	case !math.IsNaN(more.Half) && !more.Clear():
		return "about the same (" + interval(more, 2, true) + " points)"
	case more.Mean > 0:
		return text + " higher"
	default:
		return text + " lower"
	}
}

// percentMore writes how many more pod-seconds a scaler takes than another.
func percentMore(a, b ScalerRuns) string {
	switch percent := 100 * (a.Interval(podSeconds.figure).Mean/b.Interval(podSeconds.figure).Mean - 1); {
	case percent >= 0.5:
		return fmt.Sprintf("%.0f%% more", percent)
	case percent <= -0.5:
		return fmt.Sprintf("%.0f%% fewer", -percent)
	default:
		return "as many"
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
	seeds := count(len(o.Seeds), "seed")
	if len(o.Seeds) == 1 {
		return seeds
	}
	return "mean ± half the 95% interval over " + seeds
}

// WriteTable writes all figures of each profile for people.
func (r *Result) WriteTable(w io.Writer) error {
	var text strings.Builder
	for i, o := range r.Outcomes {
		if i > 0 {
			text.WriteString("\n")
		}
		o.table(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (o Outcome) table(text *strings.Builder) {
	own := func(s ScalerRuns, c cell) score.Interval { return s.Interval(c.figure) }
	o.part(text, fmt.Sprintf("%s: what users experienced (%s)", o.Profile, o.averaging()), users, false, own)
	o.costPart(text, own)
	if _, ok := o.scaler(Rival); !ok || len(o.Scalers) == 1 {
		return
	}
	title := fmt.Sprintf("\n%s: difference from %s, seed by seed (* = the 95%% interval excludes 0)", o.Profile, Rival)
	o.part(text, title, against, true, func(s ScalerRuns, c cell) score.Interval { return o.moreThanRival(s, c.figure) })
}

// costPart writes what it cost and, where the bound was played, the ratio to the bound's pod-seconds.
func (o Outcome) costPart(text *strings.Builder, own func(ScalerRuns, cell) score.Interval) {
	title := fmt.Sprintf("\n%s: what it cost", o.Profile)
	bound, ok := o.scaler(Bound)
	if !ok {
		o.part(text, title, pods, false, own)
		return
	}
	ratio := cell{title: "TIMES " + Bound + "'s", decimals: 3}
	o.part(text, title, slices.Insert(slices.Clone(pods), 1, ratio), false, func(s ScalerRuns, c cell) score.Interval {
		if c.title == ratio.title {
			return score.Ratio(s.Values(podSeconds.figure), bound.Values(podSeconds.figure))
		}
		return own(s, c)
	})
}

// part writes one block of columns, with a line for each scaler. A signed block leaves out the rival.
func (o Outcome) part(text *strings.Builder, title string, columns []cell, signed bool, value func(ScalerRuns, cell) score.Interval) {
	text.WriteString(title + "\n")
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := []string{"SCALER"}
	for _, c := range columns {
		row = append(row, c.title)
	}
	writeRow(table, row)
	for _, s := range o.Scalers {
		if signed && s.Name == Rival {
			continue
		}
		row := []string{s.Name}
		for _, c := range columns {
			row = append(row, interval(value(s, c), c.decimals, signed))
		}
		writeRow(table, row)
	}
	_ = table.Flush() // a strings.Builder takes all
}

func writeRow(w io.Writer, cells []string) {
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // likewise
}

// interval writes a mean and half its interval, if that is known.
func interval(i score.Interval, decimals int, signed bool) string {
	text := rounded(i.Mean, decimals)
	if signed && i.Mean > 0 && !isZero(text) {
		text = "+" + text
	}
	if !math.IsNaN(i.Half) {
		text += " ±" + rounded(i.Half, decimals)
	}
	if signed && i.Clear() && !isZero(rounded(i.Mean, decimals)) {
		text += " *"
	}
	return text
}

func isZero(text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && v == 0
}

// rounded writes a number for people.
func rounded(v float64, decimals int) string {
	if text := decimal(v, decimals); text != "" {
		return text
	}
	return "-"
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// measured is what the paper reports of one scaler under one load, in its tables 6 and 7.
type measured struct {
	profile, scaler                      string
	success, mean, p50, p90, p99, errors float64 // success in per cent, times in ms
}

var paper = []measured{
	{"ramp", "hpa-cpu", 90.97, 1499, 522, 4168, 10001, 12039},
	{"ramp", "keda", 95.11, 1174, 154, 3530, 10001, 6591},
	{"ramp", "paper", 99.47, 167, 26, 317, 1970, 718},
	{"spike", "hpa-cpu", 77.31, 2205, 1102, 7338, 10001, 21067},
	{"spike", "keda", 87.47, 1989, 855, 6108, 10001, 11212},
	{"spike", "paper", 91.51, 1126, 55, 3385, 10001, 8028},
}

const (
	bandSuccess = 5    // points
	bandTime    = 0.25 // of the paper's mean and p90
)

// WriteCalibration writes what the paper measured beside what came out here, for the profiles and scalers that both have.
// The model of pods was fitted to hpa-cpu and keda; paper is what it predicts.
func (r *Result) WriteCalibration(w io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	writeRow(table, []string{"PROFILE", "SCALER", "SUCCESS %", "MEAN ms", "P50 ms", "P90 ms", "P99 ms", "ERRORS", ""})
	rows := 0
	for _, m := range paper {
		for _, o := range r.Outcomes {
			s, ok := o.scaler(m.scaler)
			if !ok || o.Profile != m.profile {
				continue
			}
			rows++
			writeRow(table, m.beside(s))
		}
	}
	if rows == 0 {
		return nil
	}
	_ = table.Flush() // a strings.Builder takes all
	_, err := fmt.Fprintf(w, "\ncalibration: simulated / measured once by the paper (success within %d points, mean and p90 within %.0f%%)\n%s",
		bandSuccess, 100*bandTime, text.String())
	return err
}

// beside returns the row of one scaler.
func (m measured) beside(s ScalerRuns) []string {
	row := []string{m.profile, m.scaler}
	inside := true
	for _, reported := range []struct {
		cell
		value float64
	}{{successRate, m.success}, {mean, m.mean}, {p50, m.p50}, {p90, m.p90}, {p99, m.p99}, {failed, m.errors}} {
		c, theirs := reported.cell, reported.value
		ours := s.Interval(c.figure).Mean
		row = append(row, rounded(ours, c.decimals)+" / "+rounded(theirs, c.decimals))
		inside = inside && m.accepts(c.figure, ours, theirs)
	}
	verdict := "within"
	if !inside {
		verdict = "outside"
	}
	if m.scaler == "paper" {
		verdict = "predicted, " + verdict
	}
	return append(row, verdict)
}

// accepts reports whether a figure is in its band; figures without a band always are.
func (m measured) accepts(f score.Figure, ours, theirs float64) bool {
	switch f.Name {
	case successRate.figure.Name:
		return ours >= theirs-bandSuccess && ours <= theirs+bandSuccess
	case mean.figure.Name, p90.figure.Name:
		return ours >= theirs*(1-bandTime) && ours <= theirs*(1+bandTime)
	}
	return true
}
