package backtest

import (
	"fmt"
	"math"
	"strconv"

	"github.com/foresail/foresail/internal/lab/chart"
)

// style is how a scaler looks, in colour and without.
func style(name string) chart.Style {
	look, ok := chart.Scaler(name)
	if !ok {
		panic(fmt.Sprintf("backtest: nobody has said how lines of scaler %q look", name))
	}
	return look
}

// frontierChart shows what each scaler costs against how often it is late, with the targets that were tried.
func (r *Result) frontierChart() chart.Page {
	page := chart.Page{
		Title: "Cost against violations", Columns: 1, Width: 640, Height: 330,
		Note: fmt.Sprintf("Each line is a scaler with targets of %s. Down and left is better. The point is the target of %g.",
			targetList(r.Options.Targets), r.Options.Threshold),
	}
	c := chart.Chart{}
	most, least, dearest := 0.0, math.Inf(1), 0.0
	for _, row := range r.Frontier {
		most, dearest = max(most, row.ViolationShare()), max(dearest, row.Pods())
		if share := row.ViolationShare(); share > 0 {
			least = min(least, share)
		}
	}
	c.X = chart.Linear("pods, on average", dearest)
	c.Y = shares("share of time in violation", least, most)
	for _, name := range r.Options.Scalers {
		line := chart.Line{Style: style(name)}
		for _, row := range r.Frontier {
			if row.Scaler != name {
				continue
			}
			x, y := row.Pods(), max(row.ViolationShare(), c.Y.Min)
			line.X, line.Y = append(line.X, x), append(line.Y, y)
			if row.Target == r.Options.Threshold {
				c.Marks = append(c.Marks, chart.Mark{X: x, Y: y, OffX: math.NaN(), OffY: math.NaN(), Style: style(name)})
			}
		}
		c.Lines = append(c.Lines, line)
		page.Legend = append(page.Legend, chart.Entry{Name: name, Style: style(name)})
	}
	page.Charts = []chart.Chart{c}
	return page
}

// shares returns a logarithmic axis of shares of time. None at all is drawn at its lower end.
func shares(label string, least, most float64) chart.Axis {
	from, to := -4.0, math.Ceil(math.Log10(max(most, 1e-3)))
	if !math.IsInf(least, 1) {
		from = max(-5, min(to-1, math.Floor(math.Log10(least))))
	}
	a := chart.Axis{Label: label, Min: math.Pow(10, from), Max: math.Pow(10, to), Log: true}
	for power := from; power <= to; power++ {
		text := strconv.FormatFloat(100*math.Pow(10, power), 'g', 4, 64) + "%"
		if power == from {
			text = "≤ " + text
		}
		a.Ticks = append(a.Ticks, chart.Tick{At: math.Pow(10, power), Label: text})
	}
	return a
}

func targetList(targets []float64) string {
	return fmt.Sprintf("%g to %g", targets[0], targets[len(targets)-1])
}

// timelineChart shows an hour: what arrived, and the pods that were there for it.
func (r *Result) timelineChart() chart.Page {
	t := r.Timeline
	page := chart.Page{
		Title: "The steepest hour", Columns: 1, Width: 640, Height: 230,
		Note:   fmt.Sprintf("From %s on. Shaded: pods needed to keep each at %g.", r.Options.Trace.Start.Add(t.From).Format("2006-01-02 15:04 UTC"), r.Options.Threshold),
		Legend: []chart.Entry{{Name: "needed", Style: chart.Style{Color: chart.Shade}, Area: true}},
	}
	minutes := make([]float64, len(t.Rate))
	for i := range minutes {
		minutes[i] = float64(i) * t.Step.Minutes()
	}
	most := maximum(t.Needed)
	pods := chart.Chart{Lines: []chart.Line{{X: minutes, Y: t.Needed, Style: chart.Style{Color: chart.Shade}, Fill: true}}}
	for _, s := range t.Scalers {
		most = max(most, maximum(s.Ready))
		pods.Lines = append(pods.Lines, chart.Line{X: minutes, Y: s.Ready, Style: style(s.Name)})
		page.Legend = append(page.Legend, chart.Entry{Name: s.Name, Style: style(s.Name)})
	}
	right := chart.Linear("requests/s", maximum(t.Rate))
	pods.X, pods.Y, pods.Right = chart.Seconds("minutes", max(1, minutes[len(minutes)-1])), chart.Linear("ready pods", most), &right
	dotted := chart.Style{Color: chart.Black, Width: 0.75, Dash: []float64{1, 2}}
	pods.Lines = append(pods.Lines, chart.Line{X: minutes, Y: t.Rate, Style: dotted, OnRight: true})
	page.Legend = append(page.Legend, chart.Entry{Name: "requests/s (right)", Style: dotted})
	page.Charts = []chart.Chart{pods}
	return page
}

func maximum(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
