package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/foresail/foresail/internal/lab/report/chart"
)

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, p := range r.parts {
		if !p.terminal {
			continue
		}
		if p.Table != nil {
			p.Table.writeTo(&b, p.indent)
		}
		for _, line := range p.Lines {
			if line != "" {
				line = p.indent + line
			}
			fmt.Fprintln(&b, line)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

var (
	//go:embed style.css
	style template.CSS
	//go:embed page.html
	pageText string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"style":  func() template.CSS { return style },
		"figure": figure,
	}).Parse(pageText))
)

// WritePage writes the report as one page of HTML that needs no other file: it fits any width and
// paper, and is light or dark as the reader's screen is set. It writes nothing if it fails.
func (r *Report) WritePage(w io.Writer) error {
	data := struct {
		Name  string
		Parts []part
	}{r.Name, slices.DeleteFunc(slices.Clone(r.parts), func(p part) bool { return !p.page })}
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// figure draws a chart as a part of the page.
func figure(p *chart.Page) (template.HTML, error) {
	var b bytes.Buffer
	if err := p.WriteFragment(&b); err != nil {
		return "", err
	}
	return template.HTML("<figure>" + b.String() + "</figure>"), nil // #nosec G203 -- drawn above, its texts escaped
}
