// Package report holds the report of a command of the lab and writes it: as text for a terminal, as
// a page of HTML that needs no other file, and as files of figures and charts.
//
// A [Report] is a list of parts in the order in which they are read. Most are both on the terminal
// and on the page; figures that stand out and charts are on the page alone.
package report

import (
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/foresail/foresail/internal/lab/report/chart"
)

// Style is the look of lines on a page. A terminal has one look.
type Style string

// The styles.
const (
	Title   Style = "title"
	Section Style = "section"
	Topic   Style = "topic" // of a section
	Plain   Style = "plain"
	Quiet   Style = "quiet"
	Finding Style = "finding"
	Code    Style = "code"
)

// Key is a figure that stands out on a page, and the figure that it compares with.
type Key struct{ Name, Value, Against string }

// Report is the report of a command. The zero value is empty.
type Report struct {
	Name   string // of the page, in the title of its window; without one there is no page
	Indent string // on a terminal, of the parts that are added from now on

	parts []part
	files []file
}

// part is a part of a report: lines, keys, a table or a figure.
type part struct {
	terminal, page bool
	indent         string

	Style  Style
	Lines  []string
	Keys   []Key
	Table  *Table
	Figure *chart.Page
}

// file is a file that is saved next to the page.
type file struct {
	name  string
	write func(io.Writer) error
}

// Say adds lines.
func (r *Report) Say(s Style, lines ...string) {
	r.add(part{terminal: true, page: true, Style: s, Lines: lines})
}

// Print adds lines for the terminal alone. An empty line separates the parts before and after it.
func (r *Report) Print(lines ...string) { r.add(part{terminal: true, Lines: lines}) }

// Show adds lines for the page alone.
func (r *Report) Show(s Style, lines ...string) { r.add(part{page: true, Style: s, Lines: lines}) }

// Keys adds figures that stand out.
func (r *Report) Keys(keys ...Key) {
	if len(keys) > 0 {
		r.add(part{page: true, Keys: keys})
	}
}

// Table adds a table; nil adds nothing.
func (r *Report) Table(t *Table) { r.tables(part{terminal: true, page: true, Table: t}) }

// PrintTable adds a table for the terminal alone.
func (r *Report) PrintTable(t *Table) { r.tables(part{terminal: true, Table: t}) }

// ShowTable adds a table for the page alone.
func (r *Report) ShowTable(t *Table) { r.tables(part{page: true, Table: t}) }

func (r *Report) tables(p part) {
	if p.Table != nil {
		r.add(p)
	}
}

// Figure adds a chart.
func (r *Report) Figure(c chart.Page) { r.add(part{page: true, Figure: &c}) }

// Chart adds a chart as files of its own, NAME.svg and NAME.png.
func (r *Report) Chart(name string, c chart.Page) {
	r.File(name+".svg", c.WriteSVG)
	r.File(name+".png", c.WritePNG)
}

// Sheet adds a file of figures for programs, NAME.csv. The first row has the names of the columns.
func (r *Report) Sheet(name string, rows [][]string) {
	r.File(name+".csv", func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
}

// File adds a file.
func (r *Report) File(name string, write func(io.Writer) error) {
	r.files = append(r.files, file{name, write})
}

func (r *Report) add(p part) {
	p.indent = r.Indent
	r.parts = append(r.parts, p)
}

// PageFile is the name of the file of the page.
const PageFile = "report.html"

// Save writes the files, and the page if the report has a name, to a directory. It makes the
// directory if it is missing.
func (r *Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all := r.files
	if r.Name != "" {
		all = append(slices.Clip(all), file{PageFile, r.WritePage})
	}
	for _, f := range all {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
