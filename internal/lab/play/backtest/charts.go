package backtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

// frontierChart shows what each scaler costs against how often it is late, with the targets that were tried.
func frontierChart(r *Result) chart.Page {
	page := chart.Page{
		Title: "Cost against time above the threshold", Columns: 1, Width: 640, Height: 330,
		Note: fmt.Sprintf("Each line is an autoscaler with targets of %s. Down and left is better. The point is the target of %g.",
			targetList(r.Options.Targets), r.Options.Threshold),
	}
	c := chart.Chart{}
	most, least, cheapest, dearest := 0.0, math.Inf(1), math.Inf(1), 0.0
	for _, row := range r.Frontier {
		most = max(most, row.AboveThresholdShare())
		cheapest, dearest = min(cheapest, row.MeanPods()), max(dearest, row.MeanPods())
		if share := row.AboveThresholdShare(); share > 0 {
			least = min(least, share)
		}
	}
	c.X = chart.Between("pods, on average", cheapest, dearest)
	c.Y = shares("share of time above the threshold", least, most)
	for _, name := range r.Options.Scalers {
		line := chart.Line{Style: chart.Scaler(name)}
		for _, row := range r.Frontier {
			if row.Scaler != name {
				continue
			}
			x, y := row.MeanPods(), max(row.AboveThresholdShare(), c.Y.Min)
			line.X, line.Y = append(line.X, x), append(line.Y, y)
			if row.Target == r.Options.Threshold {
				c.Marks = append(c.Marks, chart.Mark{X: x, Y: y, OffX: math.NaN(), OffY: math.NaN(),
					Style: chart.Scaler(name)})
			}
		}
		c.Lines = append(c.Lines, line)
		page.Legend = append(page.Legend, chart.Entry{Name: scaler.Title(name), Style: chart.Scaler(name)})
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
func timelineChart(r *Result) chart.Page {
	t := r.Timeline
	page := chart.Page{
		Title: "The steepest hour", Columns: 1, Width: 640, Height: 230,
		Note: fmt.Sprintf("From %s on. Shaded: pods needed to keep each at %g.",
			r.Options.Trace.Start.Add(t.From).Format("2006-01-02 15:04 UTC"), r.Options.Threshold),
		Legend: []chart.Entry{{Name: "needed", Style: chart.Style{Color: chart.Shade}, Area: true}},
	}
	minutes := make([]float64, len(t.Rate))
	for i := range minutes {
		minutes[i] = float64(i) * t.Step.Minutes()
	}
	least, most := slices.Min(t.Needed), slices.Max(t.Needed)
	pods := chart.Chart{Lines: []chart.Line{{X: minutes, Y: t.Needed, Style: chart.Style{Color: chart.Shade},
		Fill: true}}}
	for _, s := range t.Scalers {
		least, most = min(least, slices.Min(s.Ready)), max(most, slices.Max(s.Ready))
		pods.Lines = append(pods.Lines, chart.Line{X: minutes, Y: s.Ready, Style: chart.Scaler(s.Name)})
		page.Legend = append(page.Legend, chart.Entry{Name: scaler.Title(s.Name), Style: chart.Scaler(s.Name)})
	}
	right := chart.Fitting("requests/s", slices.Min(t.Rate), slices.Max(t.Rate))
	pods.X, pods.Y, pods.Right = chart.Seconds("minutes", max(1, minutes[len(minutes)-1])), chart.Fitting("ready pods",
		least, most), &right
	dotted := chart.Style{Color: chart.Black, Width: 0.75, Dash: []float64{1, 2}}
	pods.Lines = append(pods.Lines, chart.Line{X: minutes, Y: t.Rate, Style: dotted, OnRight: true})
	page.Legend = append(page.Legend, chart.Entry{Name: "requests/s (right)", Style: dotted})
	page.Charts = []chart.Chart{pods}
	return page
}

// Timeline is how some hours went: those of the trace in which the load grew most.
type Timeline struct {
	From    time.Duration // since the beginning of the trace
	Step    time.Duration // each point stands for
	Rate    []float64     // requests per second that arrived, on average
	Needed  []float64     // the most pods that were needed in a step
	Scalers []TimelineOf
}

// TimelineOf is how many pods a scaler had.
type TimelineOf struct {
	Name  string
	Ready []float64 // the fewest that were ready in a step
}

const (
	timelineLength = time.Hour
	timelinePoints = 240
)

// timelineScalers are those that a timeline shows: more could not be distinguished.
var timelineScalers = []string{"hpa-cpu", "keda", "foresail-total"}

// playTimeline plays some scalers again in the hour whose load rises most within five minutes.
func playTimeline(ctx context.Context, p *player) (*Timeline, error) {
	part := steepest(p.Trace)
	seconds := int((part.to - part.from) / second)
	step := max(1, (seconds+timelinePoints-1)/timelinePoints)
	t := &Timeline{From: time.Duration(part.from) * time.Millisecond, Step: time.Duration(step) * time.Second}
	need := score.Need{Threshold: p.Threshold, Min: p.Min, Max: p.Max}
	for _, name := range timelineScalers {
		if !slices.Contains(p.Scalers, name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := p.setting(name)
		record, _, err := p.record(&s, part, p.Seeds[0])
		if err != nil {
			return nil, err
		}
		of, first := TimelineOf{Name: name}, len(t.Scalers) == 0
		for seconds := range slices.Chunk(record.Seconds, step) {
			rate, needed, ready := 0.0, 0, seconds[0].Ready
			for _, s := range seconds {
				rate, needed, ready = rate+s.Rate, max(needed, need.Pods(s.Offered)), min(ready, s.Ready)
			}
			of.Ready = append(of.Ready, float64(ready))
			if first {
				t.Rate, t.Needed = append(t.Rate, rate/float64(len(seconds))), append(t.Needed, float64(needed))
			}
		}
		t.Scalers = append(t.Scalers, of)
	}
	return t, nil
}

// steepest is the hour around the largest rise of the load within five minutes.
func steepest(trace *workload.Trace) section {
	const within = 5 * 60 * second
	end := trace.Length().Truncate(time.Second).Milliseconds()
	at, most := int64(0), -1.0
	for t := int64(0); t+within <= end; t += 60 * second {
		if rise := trace.Rate(t+within) - trace.Rate(t); rise > most {
			at, most = t, rise
		}
	}
	length := min(timelineLength.Milliseconds(), end)
	from := max(0, min(at-length/3, end-length)) / second * second
	return section{from, from + length}
}
