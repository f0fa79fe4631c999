// Package page writes reports as pages of HTML that need nothing else: whole at any width and on paper, light or dark as the reader's screen
// is set.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"github.com/foresail/foresail/internal/lab/report/chart"
)

var (
	//go:embed style.css
	style template.CSS
	//go:embed frame.html
	frame string
)

// Table is a table, which the template "table" draws.
type Table struct {
	Head []string
	Rows []Row
}

// Row is one of a table. A marked one stands out.
type Row struct {
	Cells  []Cell
	Marked bool
}

// Cell is a figure, with its interval below it if it has one.
type Cell struct{ Text, Interval string }

// String returns the cell in one line.
func (c Cell) String() string {
	if c.Interval == "" {
		return c.Text
	}
	return c.Text + " (" + c.Interval + ")"
}

// Key is a figure that the template "keys" draws large, and what it compares with.
type Key struct{ Name, Value, Against string }

// New returns a page, given a text that defines the templates "title" and "body".
func New(text string, funcs template.FuncMap) *template.Template {
	t := template.New("page").Funcs(template.FuncMap{"style": func() template.CSS { return style }, "figure": figure}).Funcs(funcs)
	return template.Must(template.Must(t.Parse(frame)).Parse(text))
}

// Write writes a page of data, or nothing where it fails.
func Write(w io.Writer, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// figure draws a chart as a part of the page.
func figure(p chart.Page) (template.HTML, error) {
	var b bytes.Buffer
	if err := p.WriteFragment(&b); err != nil {
		return "", err
	}
	return template.HTML("<figure>" + b.String() + "</figure>"), nil // #nosec G203 -- drawn above, its texts escaped
}
