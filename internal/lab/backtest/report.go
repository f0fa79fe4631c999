package backtest

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/foresail/foresail/internal/lab/chart"
)

//go:embed report.html
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"decimals": decimals,
	"known":    func(v float64, n int) string { return orUnknown(decimals(v, n)) },
	"percent":  func(share float64) string { return decimals(100*share, 2) + "%" },
	"isOurs":   isOurs,
}).Parse(reportText))

// WriteReport writes one page of HTML that needs nothing else.
func (r *Result) WriteReport(w io.Writer) error {
	page := struct {
		*Result
		Assumptions        []string
		Frontier, Timeline template.HTML
		Advice             []string
		Spec               string
		TunedPercent       float64
	}{Result: r, Assumptions: r.assumptions(), TunedPercent: 100 * tunedShare}
	var err error
	if len(r.Frontier) > 0 {
		if page.Frontier, err = inline(r.frontierChart()); err != nil {
			return err
		}
	}
	if r.Timeline != nil {
		if page.Timeline, err = inline(r.timelineChart()); err != nil {
			return err
		}
	}
	if r.Advice != nil {
		page.Advice, page.Spec = r.Advice.Sentences(), r.Advice.Spec()
	}
	return reportTemplate.Execute(w, page)
}

// inline draws a chart as a part of an HTML page.
func inline(p chart.Page) (template.HTML, error) {
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		return "", err
	}
	svg := b.String()
	svg = svg[strings.Index(svg, "<svg"):] // without the declaration, which only a document may have
	return template.HTML(svg), nil         // #nosec G203 -- drawn above, its texts escaped
}
