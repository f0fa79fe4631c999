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

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/report/page"
	"github.com/foresail/foresail/internal/lab/scaler"
)

//go:embed report.html
var pageText string

var reportPage = page.New(pageText, template.FuncMap{
	"span":        longSpan,
	"time":        func(t time.Time) string { return t.UTC().Format(shownTime) + " UTC" },
	"keys":        func(s Span) []page.Key { return s.keys() },
	"table":       func(s Span) *page.Table { return s.table() },
	"details":     func(s Span) []string { return s.details() },
	"chart":       (*Report).chartPage,
	"resolution":  (*Report).resolution,
	"explanation": explanation,
	"summary":     summary,
})

// WritePage writes reports as one page of HTML that needs nothing else.
func WritePage(w io.Writer, all []*Report) error { return page.Write(w, reportPage, all) }

// keys returns the figures that a span begins with: what ran, against an HPA.
func (s *Span) keys() (out []page.Key) {
	ran, hpa := s.row(""), s.row(hpaScaler)
	if ran == nil {
		return nil
	}
	add := func(name string, text func(*Row) string) {
		key := page.Key{Name: name, Value: text(ran)}
		if hpa != nil {
			key.Against = "an HPA: " + text(hpa)
		}
		out = append(out, key)
	}
	add("With too few pods", func(r *Row) string { return minutes(r.TooFewMinutes.Value) })
	if s.atMaximum() {
		add("At the maximum", func(r *Row) string { return minutes(r.AtMaximumMinutes.Value) })
	}
	add("Pod-hours", func(r *Row) string { return bare(r.PodHours.Value) })
	if p := s.prices; p != nil {
		add("Cost", func(r *Row) string { return p.Text(r.Cost.Value) })
	}
	return out
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
	out := chart.Page{Title: "Hour by hour", Columns: 1, Width: 640, Height: 190, Note: "Times are UTC. Where there is no line the load is not known."}
	looks := []struct {
		name string
		of   int // of the figures of an hour
	}{{"", 0}, {foresailScaler, 1}, {hpaScaler, 2}}
	pods, tooFew := chart.Chart{Title: "Pods, on average"}, chart.Chart{Title: "Minutes with too few pods"}
	for _, look := range looks {
		if look.of > 0 && r.Unsimulated != "" {
			continue
		}
		name, style := scaler.Title(look.name), chart.Style{Color: chart.Black, Width: 1.5}
		if look.of == 0 {
			name = asItRan
		} else {
			style, _ = chart.Scaler(look.name)
			style.Width = 1.2
		}
		x, y, late := r.lines(look.of)
		pods.Lines = append(pods.Lines, chart.Line{X: x, Y: y, Style: style})
		tooFew.Lines = append(tooFew.Lines, chart.Line{X: x, Y: late, Style: style})
		out.Legend = append(out.Legend, chart.Entry{Name: name, Style: style})
	}
	axis := r.days()
	least, most := extent(pods.Lines)
	pods.X, pods.Y = axis, chart.Fitting("pods", least, most)
	_, most = extent(tooFew.Lines)
	tooFew.X, tooFew.Y = axis, chart.Linear("minutes", max(1, most))
	out.Charts = []chart.Chart{pods, tooFew}
	return out
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

// extent returns the least and the largest value of lines.
func extent(lines []chart.Line) (least, most float64) {
	least = math.Inf(1)
	for _, line := range lines {
		for _, v := range line.Y {
			if !math.IsNaN(v) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	return least, most
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
