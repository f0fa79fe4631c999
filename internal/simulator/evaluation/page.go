package evaluation

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/foresail/foresail/internal/simulator/backtest"
	"github.com/foresail/foresail/internal/simulator/chart"
)

//go:embed report.html
var pageText string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"style":       func() template.CSS { return backtest.StyleSheet },
	"header":      func() []string { return header },
	"cells":       func(r Row) []string { return r.cells() },
	"details":     func(s Span) []string { return s.details() },
	"span":        longSpan,
	"time":        func(t time.Time) string { return t.UTC().Format(shownTime) + " UTC" },
	"resolution":  (*Report).resolution,
	"chart":       func(r *Report) (template.HTML, error) { return backtest.Inline(r.chartPage()) },
	"explanation": explanation,
	"summary":     summary,
	"ours":        func(r Row) bool { return r.Scaler == "" },
}).Parse(pageText))

// WritePage writes reports as one page of HTML that needs nothing else.
func WritePage(w io.Writer, all []*Report) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, all); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// PageFile is the name of the page.
const PageFile = "report.html"

// WriteFile writes the page to a directory.
func WriteFile(dir string, all []*Report) error {
	var b bytes.Buffer
	if err := WritePage(&b, all); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, PageFile), b.Bytes(), 0o644)
}

// chartPage shows hour by hour how many pods there were and how long they were too few, as it ran and with the scalers that can be had.
func (r *Report) chartPage() chart.Page {
	page := chart.Page{Title: "Hour by hour", Columns: 1, Width: 640, Height: 190, Note: "Times are UTC. Where there is no line the load is not known."}
	looks := []struct {
		name string
		of   int // of the figures of an hour
	}{{"", 0}, {foresailScaler, 1}, {hpaScaler, 2}}
	pods, above := chart.Chart{Title: "Pods, on average"}, chart.Chart{Title: "Minutes with too few pods"}
	for _, look := range looks {
		if look.of > 0 && r.Unsimulated != "" {
			continue
		}
		name, style := titles[look.name], chart.Style{Color: chart.Black, Width: 1.5}
		if look.of == 0 {
			name = "as it ran"
		} else {
			style, _ = chart.Scaler(look.name)
			style.Width = 1.2
		}
		x, y, late := r.lines(look.of)
		pods.Lines = append(pods.Lines, chart.Line{X: x, Y: y, Style: style})
		above.Lines = append(above.Lines, chart.Line{X: x, Y: late, Style: style})
		page.Legend = append(page.Legend, chart.Entry{Name: name, Style: style})
	}
	axis := r.days()
	pods.X, pods.Y = axis, chart.Linear("pods", highest(pods.Lines))
	above.X, above.Y = axis, chart.Linear("minutes", highest(above.Lines))
	page.Charts = []chart.Chart{pods, above}
	return page
}

// lines returns those of a scaler: hours since the first block, its pods, and its minutes with too few pods; NaN in gaps of more than an hour.
func (r *Report) lines(of int) (x, pods, tooFew []float64) {
	for i, h := range r.hourly {
		if i > 0 && h.at.Sub(r.hourly[i-1].at) > 2*time.Hour {
			x, pods, tooFew = append(x, r.since(r.hourly[i-1].at)), append(pods, math.NaN()), append(tooFew, math.NaN())
		}
		x, pods, tooFew = append(x, r.since(h.at)), append(pods, h.pods[of]/h.hours), append(tooFew, h.tooFew[of])
	}
	return x, pods, tooFew
}

func (r *Report) since(t time.Time) float64 { return t.Sub(r.hourly[0].at).Hours() }

func highest(lines []chart.Line) float64 {
	most := 1.0
	for _, line := range lines {
		for _, v := range line.Y {
			if v > most {
				most = v
			}
		}
	}
	return most
}

// days is the axis of time, with a tick at midnights, or every three hours of a day or less.
func (r *Report) days() chart.Axis {
	begin := r.hourly[0].at.UTC()
	end := r.since(r.hourly[len(r.hourly)-1].at) + 1
	a := chart.Axis{Max: end}
	each, format := 24*time.Hour, "Jan 2"
	if end <= 48 {
		each, format = 6*time.Hour, "15:04"
	}
	for t := begin.Truncate(each); r.since(t) <= end; t = t.Add(each) {
		if at := r.since(t); at >= 0 {
			a.Ticks = append(a.Ticks, chart.Tick{At: at, Label: t.Format(format)})
		}
	}
	return a
}
