package evaluation

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/scaler"
)

// chartPage shows hour by hour how many pods there were and how long they were too few, as it ran and with the scalers that can be had.
func (r *Result) chartPage() chart.Page {
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
			style = chart.Scaler(look.name)
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
func (r *Result) lines(of int) (x, pods, tooFew []float64) {
	for i, h := range r.hourly {
		if i > 0 && h.at.Sub(r.hourly[i-1].at) > 2*time.Hour {
			x, pods, tooFew = append(x, r.since(r.hourly[i-1].at)), append(pods, math.NaN()), append(tooFew, math.NaN())
		}
		x, pods, tooFew = append(x, r.since(h.at)), append(pods, h.pods[of]/h.hours), append(tooFew, h.tooFew[of])
	}
	return x, pods, tooFew
}

func (r *Result) since(t time.Time) float64 { return t.Sub(r.hourly[0].at).Hours() }

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
func (r *Result) days() chart.Axis {
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
