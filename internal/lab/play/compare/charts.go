package compare

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/score"
)

// bandShare is the share of seeds below and above a band.
const bandShare = 0.1

// Charts adds charts of each profile as files: what each scaler did, what its users saw over time
// and altogether, and what that cost. threshold is the utilisation that scalers were to hold, most
// the largest number of pods.
func (r *Result) Charts(out *report.Report, threshold float64, most int) {
	for _, o := range r.Outcomes {
		out.Chart(o.Profile+"-scaling", scalingPage(o, threshold, most))
		out.Chart(o.Profile+"-latency", latencyPage(o))
		out.Chart(o.Profile+"-answers", answersPage(o))
		out.Chart(o.Profile+"-cost", costPage(o))
	}
}

var (
	loadStyle        = chart.Style{Color: chart.Shade}
	utilizationStyle = chart.Style{Color: chart.Purple, Width: 1.2}
	readyStyle       = chart.Style{Color: chart.Green, Width: 1.4}
	orderedStyle     = chart.Style{Color: chart.Green, Width: 0.8, Dash: []float64{3, 2}}
	thresholdStyle   = chart.Style{Color: chart.Vermilion, Width: 0.8, Dash: []float64{4, 3}}
	medianStyle      = chart.Style{Color: chart.Blue, Width: 1.2}
	p90Style         = chart.Style{Color: chart.Orange, Width: 1.2}
	lostStyle        = chart.Style{Color: chart.Black, Width: 0.8, Dash: []float64{2, 2}}
)

// scalingPage has what the paper's figures 22 to 27 have: load, utilisation and pods.
func scalingPage(o Outcome, threshold float64, most int) chart.Page {
	peak := peakOf(o)
	page := pageOf(o, "utilisation and pods",
		"Shaded: load, up to "+report.Decimal(peak, 0)+" requests/s. Bands hold four seeds in five.",
		chart.Entry{Name: "load", Style: loadStyle, Area: true},
		chart.Entry{Name: "busy share of ready pods", Style: utilizationStyle},
		chart.Entry{Name: "threshold", Style: thresholdStyle},
		chart.Entry{Name: "pods that take requests", Style: readyStyle},
		chart.Entry{Name: "pods ordered", Style: orderedStyle},
	)
	x, y, right := timeAxis(o), chart.Linear("busy share", 1), chart.Linear("pods", float64(most))
	for _, s := range o.Scalers {
		at := s.times()
		utilization := s.line(func(s Series) []float64 { return s.Utilization }, utilizationStyle)
		ready := s.line(func(s Series) []float64 { return s.Ready }, readyStyle)
		ordered := s.line(func(s Series) []float64 { return s.Pods }, orderedStyle)
		ordered.Low, ordered.High = nil, nil
		ready.OnRight, ordered.OnRight = true, true
		page.Charts = append(page.Charts, chart.Chart{
			Title: s.Name, X: x, Y: y, Right: &right,
			Lines: []chart.Line{
				s.load(peak, y.Max), {X: []float64{at[0], x.Max}, Y: []float64{threshold, threshold},
					Style: thresholdStyle}, utilization, ordered, ready,
			},
		})
	}
	return page
}

func latencyPage(o Outcome) chart.Page {
	peak := peakOf(o)
	page := pageOf(o, "latency by when requests were sent", "Shaded: load, up to "+report.Decimal(peak, 0)+
		" requests/s. Clients give up after 10 s. Bands hold four seeds in five.",
		chart.Entry{Name: "load", Style: loadStyle, Area: true},
		chart.Entry{Name: "median", Style: medianStyle},
		chart.Entry{Name: "90th percentile", Style: p90Style},
		chart.Entry{Name: "share that failed or was dropped", Style: lostStyle},
	)
	x, y, right := timeAxis(o), chart.Milliseconds("latency", 1, 4), chart.Linear("lost, %", 100)
	for _, s := range o.Scalers {
		lost := s.line(func(s Series) []float64 { return times(100, s.Lost) }, lostStyle)
		lost.OnRight, lost.Low, lost.High = true, nil, nil
		load := s.load(peak, right.Max)
		load.OnRight = true
		page.Charts = append(page.Charts, chart.Chart{
			Title: s.Name, X: x, Y: y, Right: &right,
			Lines: []chart.Line{
				load, lost,
				s.line(func(s Series) []float64 { return s.Median }, medianStyle),
				s.line(func(s Series) []float64 { return s.P90 }, p90Style),
			},
		})
	}
	return page
}

// answersPage has what share of the requests was answered within which time.
func answersPage(o Outcome) chart.Page {
	page := pageOf(o, "requests answered within a time",
		"Of all that arrived, those included that failed or were dropped.")
	page.Columns, page.Width, page.Height = 1, 640, 360
	var at []float64
	for _, ms := range Latencies() {
		at = append(at, float64(ms))
	}
	ch := chart.Chart{X: chart.Milliseconds("time", 1, 4)}
	for _, s := range o.Scalers {
		l := s.line(func(s Series) []float64 { return times(100, s.Answered) }, chart.Scaler(s.Name))
		l.X, l.Low, l.High = at, nil, nil
		ch.Lines = append(ch.Lines, l)
		page.Legend = append(page.Legend, chart.Entry{Name: s.Name, Style: l.Style})
	}
	ch.Y = chart.Linear("answered, %", 100)
	page.Charts = []chart.Chart{ch}
	return page
}

// costPage has what pods cost, and what came of it.
func costPage(o Outcome) chart.Page {
	page := pageOf(o, "success and what it cost",
		"The better a scaler, the further up and left. Bars are 95% intervals.")
	page.Columns, page.Width, page.Height = 1, 640, 360
	var xs, ys []score.Interval
	for _, s := range o.Scalers {
		x := s.Interval(score.Figure{Of: func(f score.Figures) float64 { return f.Seconds }})
		y := s.Interval(score.Figure{Of: func(f score.Figures) float64 { return 100 * f.Success }})
		xs, ys = append(xs, x), append(ys, y)
	}
	ch := chart.Chart{X: around("pod-seconds", xs, math.Inf(1)), Y: around("success, %", ys, 100)}
	for i, s := range o.Scalers {
		style, shape := chart.Scaler(s.Name), scalerShape(s.Name)
		ch.Marks = append(ch.Marks, chart.Mark{X: xs[i].Mean, Y: ys[i].Mean, OffX: xs[i].Half, OffY: ys[i].Half,
			Style: style, Shape: shape})
		page.Legend = append(page.Legend, chart.Entry{Name: s.Name, Style: style, Mark: true, Shape: shape})
	}
	page.Charts = []chart.Chart{ch}
	return page
}

// pageOf has room for a chart of each scaler.
func pageOf(o Outcome, of, note string, legend ...chart.Entry) chart.Page {
	seeds := " One seed."
	if len(o.Seeds) > 1 {
		seeds = " Means of " + report.Count(len(o.Seeds), "seed") + "."
	}
	return chart.Page{
		Title: o.Profile + ": " + of, Note: note + seeds,
		Columns: min(3, len(o.Scalers)), Width: 300, Height: 190, Legend: legend,
	}
}

// timeAxis is the axis of what counts.
func timeAxis(o Outcome) chart.Axis {
	s := o.Scalers[0]
	at := s.times()
	return chart.Seconds("seconds", at[len(at)-1]+s.Runs[0].Series.Step.Seconds())
}

// peakOf is the largest load of a step, on average over the seeds, rounded up to a figure.
func peakOf(o Outcome) float64 {
	rate := o.Scalers[0].line(func(s Series) []float64 { return s.Rate }, loadStyle)
	largest := max(1, slices.Max(rate.Y))
	unit := math.Pow(10, math.Floor(math.Log10(largest))-1)
	return math.Round(largest/unit) * unit
}

// load is the load as an area whose peak is as high as the axis.
func (s ScalerRuns) load(peak, top float64) chart.Line {
	l := s.line(func(s Series) []float64 { return times(top/peak, s.Rate) }, loadStyle)
	for i, y := range l.Y {
		l.Y[i] = min(y, top)
	}
	l.Fill, l.Low, l.High = true, nil, nil
	return l
}

// times are where the points of a scaler's series are: the middle of each step.
func (s ScalerRuns) times() []float64 {
	series := s.Runs[0].Series
	at := make([]float64, len(series.Pods))
	for i := range at {
		at[i] = (float64(i) + 0.5) * series.Step.Seconds()
	}
	return at
}

// line is the mean over the seeds of something, with a band where there are several.
func (s ScalerRuns) line(of func(Series) []float64, style chart.Style) chart.Line {
	var all [][]float64
	for _, run := range s.Runs {
		all = append(all, of(run.Series))
	}
	l := chart.Line{X: s.times(), Style: style}
	for i := range all[0] {
		var values []float64
		for _, series := range all {
			if !math.IsNaN(series[i]) {
				values = append(values, series[i])
			}
		}
		l.Y = append(l.Y, meanOf(values))
		if len(all) == 1 {
			continue
		}
		low, high := math.NaN(), math.NaN()
		if len(values) > 0 {
			slices.Sort(values)
			low, high = stat.Quantile(bandShare, stat.LinInterp, values, nil), stat.Quantile(1-bandShare,
				stat.LinInterp, values, nil)
		}
		l.Low, l.High = append(l.Low, low), append(l.High, high)
	}
	return l
}

func times(factor float64, values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = factor * v
	}
	return out
}

// around is an axis that holds intervals, with round ends that are not beyond a limit.
func around(label string, of []score.Interval, limit float64) chart.Axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, i := range of {
		half := i.Half
		if math.IsNaN(half) {
			half = 0
		}
		low, high = min(low, i.Mean-half), max(high, i.Mean+half)
	}
	return chart.Between(label, low, min(high, limit))
}

// scalerShape distinguishes scalers, variations of them and bounds.
func scalerShape(name string) chart.Shape {
	switch {
	case name == "clairvoyant" || strings.HasPrefix(name, "instant"):
		return chart.Triangle
	case strings.Contains(name, "/"):
		return chart.Ring
	}
	return chart.Dot
}
