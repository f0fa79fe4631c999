package evaluation

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/score"
)

// chartPage shows hour by hour how many pods there were and how long they were too few, as it ran
// and with the scalers that can be had.
func (r *Result) chartPage() chart.Page {
	out := chart.Page{
		Title: "Hour by hour", Columns: 1, Width: 640, Height: 190,
		Note: "Times are UTC. Where there is no line the load is not known.",
	}
	pods, tooFew := chart.Chart{Title: "Pods, on average"}, chart.Chart{Title: "Minutes with too few pods"}
	for i, name := range []string{"", foresailScaler, hpaScaler} {
		if i == len(r.played) {
			break // nothing is simulated
		}
		style := chart.Style{Color: chart.Black, Width: 1.5}
		if name != "" {
			style = chart.Scaler(name)
			style.Width = 1.2
		}
		x, y, late := r.lines(r.played[i])
		pods.Lines = append(pods.Lines, chart.Line{X: x, Y: y, Style: style})
		tooFew.Lines = append(tooFew.Lines, chart.Line{X: x, Y: late, Style: style})
		out.Legend = append(out.Legend, chart.Entry{Name: title(name), Style: style})
	}
	axis := r.days()
	least, most := extent(pods.Lines)
	pods.X, pods.Y = axis, chart.Fitting("pods", least, most)
	_, most = extent(tooFew.Lines)
	tooFew.X, tooFew.Y = axis, chart.Linear("minutes", max(1, most))
	out.Charts = []chart.Chart{pods, tooFew}
	return out
}

// lines returns hours since the first block, the pods in each block, and its minutes with too few
// pods; NaN in gaps of more than an hour.
func (r *Result) lines(blocks []score.Pods) (x, pods, tooFew []float64) {
	for i, p := range blocks {
		if i > 0 && r.began[i].Sub(r.began[i-1]) > 2*time.Hour {
			x, pods, tooFew = append(x, r.since(r.began[i-1])), append(pods, math.NaN()), append(tooFew, math.NaN())
		}
		x = append(x, r.since(r.began[i]))
		pods, tooFew = append(pods, p.PodHours()/r.played[0][i].Hours()), append(tooFew, p.TooFewMinutes())
	}
	return x, pods, tooFew
}

func (r *Result) since(t time.Time) float64 { return t.Sub(r.began[0]).Hours() }

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
	begin := r.began[0].UTC()
	end := r.since(r.began[len(r.began)-1]) + 1
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
