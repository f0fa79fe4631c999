package compare

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/foresail/foresail/internal/lab/score"
)

// lessonColumns are the columns of a lesson, and those in which its variants are compared with what is recommended.
func lessonColumns() (own, more []cell) {
	u, p := users(), pods()
	success := u[0]
	success.title = "more: SUCCESS points"
	return []cell{u[0], u[3], u[4], p[0], p[5], p[8]}, []cell{success, p[0], p[5]}
}

// WriteLessons writes a table for each lesson and profile.
func WriteLessons(w io.Writer, all []Lesson) error {
	var text strings.Builder
	for _, l := range all {
		for _, o := range l.Result.Outcomes {
			l.table(&text, o)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (l Lesson) table(text *strings.Builder, o Outcome) {
	own, more := lessonColumns()
	how := fmt.Sprintf("mean ± half the 95%% interval over %s; more: than %q, seed by seed", count(len(o.Seeds), "seed"), o.Scalers[0].Name)
	if len(o.Seeds) == 1 {
		how = fmt.Sprintf("1 seed; more: than %q", o.Scalers[0].Name)
	}
	fmt.Fprintf(text, "\n%s, %s: %s (%s)\n", l.Name, o.Profile, l.Title, how)
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	header := []string{strings.ToUpper(l.Name)}
	for _, c := range append(own, more...) {
		header = append(header, c.title)
	}
	writeRow(table, header)
	for i, s := range o.Scalers {
		row := []string{s.Name}
		for _, c := range own {
			row = append(row, interval(s.Interval(c.figure), c.decimals, false))
		}
		for _, c := range more {
			if i == 0 {
				row = append(row, "")
				continue
			}
			row = append(row, interval(o.moreThanFirst(s, c.figure), c.decimals, true))
		}
		writeRow(table, row)
	}
	_ = table.Flush() // a strings.Builder takes all
}

// WriteLessonsCSV writes a line for each lesson, profile and variant: for each figure its mean, half the width of its 95%
// interval, and the same of how much more it is than that of what is recommended, seed by seed.
func WriteLessonsCSV(w io.Writer, all []Lesson) error {
	header := []string{"lesson", "profile", "variant", "reference", "seeds"}
	for _, f := range score.All() {
		header = append(header, f.Name, f.Name+"_half", f.Name+"_minus_reference", f.Name+"_minus_reference_half")
	}
	rows := [][]string{header}
	for _, l := range all {
		l.Result.each(func(o Outcome, s ScalerRuns) {
			row := []string{l.Name, o.Profile, s.Name, o.Scalers[0].Name, strconv.Itoa(len(s.Runs))}
			for _, f := range score.All() {
				own, more := s.Interval(f), o.moreThanFirst(s, f)
				row = append(row, decimal(own.Mean, f.Decimals), decimal(own.Half, f.Decimals), decimal(more.Mean, f.Decimals), decimal(more.Half, f.Decimals))
			}
			rows = append(rows, row)
		})
	}
	return writeCSV(w, rows)
}

// moreThanFirst returns how much larger a figure is than that of the first scaler; not known of that one itself.
func (o Outcome) moreThanFirst(s ScalerRuns, f score.Figure) score.Interval {
	if s.Name == o.Scalers[0].Name {
		return score.IntervalOf(nil)
	}
	return score.Difference(s.Values(f), o.Scalers[0].Values(f))
}
