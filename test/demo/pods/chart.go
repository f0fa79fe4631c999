package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/terminal"
)

// The chart in its own units, as pixels at its natural size: two plots above each other on one axis of time.
const (
	chartWidth, chartHeight = 860, 520
	plotLeft, plotRight     = 52, 840
)

// frame is the rectangle of a plot, with what its edges stand for.
type frame struct {
	top, bottom float64 // in the chart
	span        time.Duration
	highest     float64
}

func (f frame) x(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*min(1, at.Seconds()/f.span.Seconds())
}

func (f frame) y(v float64) float64 { return f.bottom - (f.bottom-f.top)*min(v, f.highest)/f.highest }

// chartStyle colours the chart for light and dark pages; it brings its own background, so that it
// fits either.
const chartStyle = `
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:17px;font-weight:600}.h{font-weight:600}.dim{fill:#59636e}.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:#ffffff;stroke:#d1d9e0}.grid{stroke:#d1d9e0;stroke-width:1;fill:none}.need{fill:#eaeef2}
.limit{stroke:#59636e;stroke-width:1.5;stroke-dasharray:6 4;fill:none}
.p,.r{fill:none;stroke-linejoin:round}.p{stroke:#0969da;stroke-width:2.5}.r{stroke:#d1570a;stroke-width:2.5}
.ask{stroke-width:1.2;stroke-dasharray:2 2.5}.over{fill:#d1570a;fill-opacity:.16;stroke:none}.pover{fill:#0969da;fill-opacity:.2;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.dim{fill:#9198a1}.page{fill:#0d1117;stroke:#3d444d}.grid{stroke:#30363d}.need{fill:#212830}
.limit{stroke:#9198a1}.p{stroke:#58a6ff}.r{stroke:#f0883e}.over{fill:#f0883e;fill-opacity:.2}.pover{fill:#58a6ff;fill-opacity:.25}}
`

// chart draws two runs of one load as an SVG document that needs nothing else.
func chart(p loadgen.Profile, c comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", chartWidth, chartHeight, chartWidth, chartHeight)
	b.WriteString("<title>Pods and load of two applications under the same ramp</title>\n<style>" + chartStyle + "</style>\n")
	fmt.Fprintf(&b, `<rect class="page" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", chartWidth-1,
		chartHeight-1)
	writeHead(&b, p, c)
	highest := float64(max(c.predicted.Peak(), c.reactive.Peak(), needed(c.predicted.App, most(p))))
	writePods(&b, frame{top: 142, bottom: 292, span: p.Duration(), highest: highest + 1}, p, c)
	τ := threshold(c.predicted.App)
	loads := frame{top: 348, bottom: 478, span: p.Duration(), highest: math.Max(1.5*τ, math.Min(2.5*τ, heaviest(c)))}
	writeLoads(&b, loads, c)
	writeTimes(&b, loads)
	b.WriteString("</svg>\n")
	return b.String()
}

func heaviest(c comparison) float64 {
	top := 0.0
	for _, m := range slices.Concat(c.predicted.Moments, c.reactive.Moments) {
		top = math.Max(top, m.Load)
	}
	return top
}

// text writes a text with its left, middle or right at x, by its class.
func text(b *strings.Builder, x, y float64, class, format string, values ...any) {
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" class="%s">%s</text>`+"\n", x, y, class, fmt.Sprintf(format, values...))
}

// heading writes a name and, behind it, what it means: as one text, since how wide letters are is
// the reader's.
func heading(b *strings.Builder, y float64, name, meaning string) {
	fmt.Fprintf(b, `<text x="20" y="%.0f"><tspan class="h">%s</tspan><tspan class="dim" dx="10">%s</tspan></text>`+"\n",
		y, name, meaning)
}

func path(b *strings.Builder, class, d string) {
	fmt.Fprintf(b, `<path class="%s" d="%s"/>`+"\n", class, d)
}

// writeHead writes what was done and, for each application, what it came to.
func writeHead(b *strings.Builder, p loadgen.Profile, c comparison) {
	text(b, 20, 32, "title", "The same ramp, the same HPA: one reads the forecast, one the present load")
	text(b, 20, 53, "dim", "%.0f to %.0f requests/s; a pod takes %.0f s to become ready; a real kube-controller-manager scales", p[0].RPS, most(p), readyDelay.Seconds())
	for i, r := range []struct {
		class, name string
		run         stack.Run
	}{{"p", "HPA on the forecast", c.predicted}, {"r", "HPA on the present load", c.reactive}} {
		y := 78 + 20*float64(i)
		path(b, r.class, fmt.Sprintf("M20 %.0fh26", y-4.5))
		text(b, 54, y, "h", "%s", r.name)
		l := r.run.Report.Latency
		text(b, 250, y, "", "%d s above the threshold, p90 %s, p99 %s, %d pod-seconds",
			r.run.SecondsAbove(), latency(l.P90, l.Count), latency(l.P99, l.Count), r.run.PodSeconds())
	}
}

// writePods draws the pods that the load needs as an area, those ready as lines, those asked for as
// thin lines.
func writePods(b *strings.Builder, f frame, p loadgen.Profile, c comparison) {
	heading(b, f.top-14, "Pods", "ready (line) and asked for (dotted); grey: what the load needs at that moment")
	var need []stack.Moment
	for at := time.Duration(0); at < p.Duration(); at += time.Second {
		need = append(need, stack.Moment{At: at, State: stack.State{Ready: needed(c.predicted.App, p.Rate(at))}})
	}
	ready := func(m stack.Moment) int { return m.Ready }
	asked := func(m stack.Moment) int { return m.Replicas }
	path(b, "need", fmt.Sprintf("%sL%.1f %.1fL%d %.1fZ", stairs(f, need, ready), f.x(f.span), f.bottom, plotLeft,
		f.bottom))
	every := 2.0
	if f.highest > 14 {
		every = 5
	}
	for v := 0.0; v < f.highest; v += every {
		writeLevel(b, f, v, fmt.Sprintf("%.0f", v))
	}
	path(b, "r ask", stairs(f, c.reactive.Moments, asked))
	path(b, "p ask", stairs(f, c.predicted.Moments, asked))
	path(b, "r", stairs(f, c.reactive.Moments, ready))
	path(b, "p", stairs(f, c.predicted.Moments, ready))
}

// writeLoads draws the load of a ready pod, and fills what is above the threshold.
func writeLoads(b *strings.Builder, f frame, c comparison) {
	heading(b, f.top-14, "Load per ready pod", "share of a pod's time that the requests need; above 1 they queue up")
	τ := threshold(c.predicted.App)
	for v := 0.0; v <= f.highest; v += 0.5 {
		writeLevel(b, f, v, fmt.Sprintf("%.1f", v))
	}
	path(b, "over", above(f, c.reactive.Moments, τ))
	path(b, "pover", above(f, c.predicted.Moments, τ))
	path(b, "limit", fmt.Sprintf("M%d %.1fH%d", plotLeft, f.y(τ), plotRight))
	text(b, plotLeft+6, f.y(τ)-6, "dim", "threshold %.2g", τ)
	path(b, "r", curve(f, c.reactive.Moments))
	path(b, "p", curve(f, c.predicted.Moments))
}

func writeLevel(b *strings.Builder, f frame, v float64, name string) {
	path(b, "grid", fmt.Sprintf("M%d %.1fH%d", plotLeft, f.y(v), plotRight))
	text(b, plotLeft-8, f.y(v)+4.5, "dim end", "%s", name)
}

func writeTimes(b *strings.Builder, f frame) {
	every := 30 * time.Second
	for f.span/every > 10 {
		every *= 2
	}
	for at := time.Duration(0); at <= f.span; at += every {
		text(b, f.x(at), f.bottom+20, "dim mid", "%s", terminal.Clock(at))
	}
}

// within are the moments of the load, without the wait for the last answers.
func within(f frame, moments []stack.Moment) []stack.Moment {
	for i, m := range moments {
		if m.At >= f.span {
			return moments[:i]
		}
	}
	return moments
}

// stairs is a path that keeps a count until it changes.
func stairs(f frame, moments []stack.Moment, count func(stack.Moment) int) string {
	var b strings.Builder
	last := -1
	for _, m := range within(f, moments) {
		switch n := count(m); {
		case last < 0:
			fmt.Fprintf(&b, "M%d %.1f", plotLeft, f.y(float64(n)))
			last = n
		case n != last:
			fmt.Fprintf(&b, "H%.1fV%.1f", f.x(m.At), f.y(float64(n)))
			last = n
		}
	}
	if last >= 0 {
		fmt.Fprintf(&b, "H%d", plotRight)
	}
	return b.String()
}

// curve is a path through the loads.
func curve(f frame, moments []stack.Moment) string {
	var b strings.Builder
	for i, m := range within(f, moments) {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", command, f.x(m.At), f.y(m.Load))
	}
	return b.String()
}

// above is the area between the loads and the threshold where they are above it.
func above(f frame, moments []stack.Moment, τ float64) string {
	moments = within(f, moments)
	if len(moments) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", f.x(moments[0].At), f.y(τ))
	for _, m := range moments {
		fmt.Fprintf(&b, "L%.1f %.1f", f.x(m.At), f.y(math.Max(τ, m.Load)))
	}
	fmt.Fprintf(&b, "L%.1f %.1fZ", f.x(moments[len(moments)-1].At), f.y(τ))
	return b.String()
}
