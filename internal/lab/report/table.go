package report

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is a table of figures.
type Table struct {
	Head  []string
	Rows  []Row
	Right bool // cells are aligned to the right on a terminal
}

// Row is a row of a table. A marked row stands out on a page.
type Row struct {
	Cells  []Cell
	Marked bool
}

// Cell is a figure, with its interval if it has one.
type Cell struct{ Text, Interval string }

// String returns the cell in one line.
func (c Cell) String() string {
	if c.Interval == "" {
		return c.Text
	}
	return c.Text + " (" + c.Interval + ")"
}

// NewTable returns a table with these columns.
func NewTable(head ...string) *Table { return &Table{Head: head} }

// Add adds a row of texts, and returns it.
func (t *Table) Add(texts ...string) *Row {
	row := Row{Cells: make([]Cell, len(texts))}
	for i, text := range texts {
		row.Cells[i].Text = text
	}
	t.Rows = append(t.Rows, row)
	return &t.Rows[len(t.Rows)-1]
}

// Column is a column of a table that has a row for each T.
type Column[T any] struct {
	Head string
	Of   func(T) Cell
}

// Text returns a column of texts without intervals.
func Text[T any](head string, of func(T) string) Column[T] {
	return Column[T]{head, func(v T) Cell { return Cell{Text: of(v)} }}
}

// Number returns a column of numbers with a number of decimals, and a dash for unknown ones.
func Number[T any](head string, decimals int, of func(T) float64) Column[T] {
	return Text(head, func(v T) string { return OrDash(Decimal(of(v), decimals)) })
}

// TableOf returns a table with a row for each thing.
func TableOf[T any](columns []Column[T], things []T, marked func(T) bool) *Table {
	t := &Table{}
	for _, c := range columns {
		t.Head = append(t.Head, c.Head)
	}
	for _, thing := range things {
		row := Row{Marked: marked != nil && marked(thing)}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.Of(thing))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writeTo writes the table with its cells below each other.
func (t *Table) writeTo(b *bytes.Buffer, indent string) {
	var aligned strings.Builder
	flags, end := uint(0), "\n"
	if t.Right {
		flags, end = tabwriter.AlignRight, "\t\n" // the last column is aligned as well
	}
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', flags)
	fmt.Fprint(w, strings.Join(t.Head, "\t")+end)
	for _, row := range t.Rows {
		texts := make([]string, len(row.Cells))
		for i, c := range row.Cells {
			texts[i] = c.String()
		}
		fmt.Fprint(w, strings.Join(texts, "\t")+end)
	}
	_ = w.Flush() // a strings.Builder takes all
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(b, strings.TrimRight(indent+line, " \n"))
	}
}
