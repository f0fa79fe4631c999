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

// cell is a column of a table for people.
type cell struct {
	title    string
	decimals int
	figure   score.Figure
}

func column(title string, decimals int, of func(score.Figures) float64) cell {
	return cell{title, decimals, score.Figure{Name: title, Of: of}}
}

// users are the columns that tell what users saw.
func users() []cell {
	return []cell{
		column("SUCCESS %", 2, func(f score.Figures) float64 { return 100 * f.Success }),
		column("MEAN ms", 0, func(f score.Figures) float64 { return f.Mean }),
		column("P50 ms", 0, func(f score.Figures) float64 { return f.P50 }),
		column("P90 ms", 0, func(f score.Figures) float64 { return f.P90 }),
		column("P99 ms", 0, func(f score.Figures) float64 { return f.P99 }),
		column("ERRORS", 0, func(f score.Figures) float64 { return f.Errors }),
		column("DROPPED", 0, func(f score.Figures) float64 { return f.Dropped }),
	}
}

// pods are the columns that tell what it took.
func pods() []cell {
	return []cell{
		column("POD-SECONDS", 0, func(f score.Figures) float64 { return f.Seconds }),
		column("UNDER s", 0, func(f score.Figures) float64 { return f.UnderSeconds }),
		column("SHORT pods", 2, func(f score.Figures) float64 { return f.Short }),
		column("OVER s", 0, func(f score.Figures) float64 { return f.OverSeconds }),
		column("SPARE pods", 2, func(f score.Figures) float64 { return f.Spare }),
		column("VIOLATION min", 2, func(f score.Figures) float64 { return f.ViolationMinutes }),
		column("SATURATED min", 2, func(f score.Figures) float64 { return f.SaturatedMinutes }),
		column("ACTIONS", 1, func(f score.Figures) float64 { return f.Actions }),
		column("REVERSALS", 1, func(f score.Figures) float64 { return f.Reversals }),
	}
}

// against are the columns that are compared with the rival.
func against() []cell {
	u, p := users(), pods()
	u[0].title = "SUCCESS points"
	return []cell{u[0], u[1], u[3], u[4], u[5], u[6], p[0], p[5]}
}

// WriteTable writes what came of each profile for people.
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
	seeds := count(len(o.Seeds), "seed")
	how := "mean ± half the 95% interval over " + seeds
	if len(o.Seeds) == 1 {
		how = seeds
	}
	own := func(s ScalerRuns, c cell) score.Interval { return s.Interval(c.figure) }
	o.part(text, fmt.Sprintf("%s: what users saw (%s)", o.Profile, how), users(), false, own)
	o.tookPart(text, own)
	if _, ok := o.scaler(Rival); !ok || len(o.Scalers) == 1 {
		return
	}
	title := fmt.Sprintf("\n%s: how much more than %s, seed by seed (* = the 95%% interval leaves no doubt about the sign)", o.Profile, Rival)
	o.part(text, title, against(), true, func(s ScalerRuns, c cell) score.Interval { return o.moreThanRival(s, c.figure) })
}

// tookPart writes what it took and, where the bound was played, how many times what it takes who knows the future.
func (o Outcome) tookPart(text *strings.Builder, own func(ScalerRuns, cell) score.Interval) {
	title, columns := fmt.Sprintf("\n%s: what it took", o.Profile), pods()
	bound, ok := o.scaler(Bound)
	if !ok {
		o.part(text, title, columns, false, own)
		return
	}
	ratio := cell{title: "TIMES " + Bound + "'s", decimals: 3}
	seconds := columns[0].figure
	o.part(text, title, slices.Insert(columns, 1, ratio), false, func(s ScalerRuns, c cell) score.Interval {
		if c.title == ratio.title {
			return score.Ratio(s.Values(seconds), bound.Values(seconds))
		}
		return own(s, c)
	})
}

// part writes one block of columns, with a line for each scaler, but for the rival where all are compared with it.
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

// interval writes a mean and how far it may be off; the latter is left out where it is not known.
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
