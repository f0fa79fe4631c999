package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// grid draws faint lines at the ticks.
func grid(ch Chart) plot.Plotter {
	return plotter(func(c draw.Canvas, _ *plot.Plot) {
		thin := draw.LineStyle{Color: color.NRGBA{0, 0, 0, 30}, Width: 0.5}
		for _, t := range ch.X.Ticks {
			x := c.X(ch.X.norm(t.At))
			c.StrokeLine2(thin, x, c.Min.Y, x, c.Max.Y)
		}
		for _, t := range ch.Y.Ticks {
			y := c.Y(ch.Y.norm(t.At))
			c.StrokeLine2(thin, c.Min.X, y, c.Max.X, y)
		}
	})
}

type plotter func(draw.Canvas, *plot.Plot)

func (p plotter) Plot(c draw.Canvas, of *plot.Plot) { p(c, of) }

// drawnLine is a line of a chart.
type drawnLine struct {
	Line
	chart Chart
}

// Plot implements the library's Plotter.
func (l drawnLine) Plot(c draw.Canvas, _ *plot.Plot) {
	if l.Low != nil {
		for _, part := range l.parts(c, l.Low, l.High) {
			c.FillPolygon(faint(l.Style.Color), c.ClipPolygonXY(band(part)))
		}
	}
	for _, part := range l.parts(c, l.Y, l.Y) {
		points := make([]vg.Point, len(part))
		for i, p := range part {
			points[i] = p.high
		}
		if !l.Fill {
			c.StrokeLines(l.Style.line(), c.ClipLinesXY(points)...)
			continue
		}
		first, last := points[0], points[len(points)-1]
		points = append(points, vg.Point{X: last.X, Y: c.Min.Y}, vg.Point{X: first.X, Y: c.Min.Y})
		c.FillPolygon(l.Style.Color, c.ClipPolygonXY(points))
	}
}

// pair is the two ends of a band at one place.
type pair struct{ low, high vg.Point }

// band goes along the upper ends and back along the lower ones.
func band(part []pair) []vg.Point {
	var points []vg.Point
	for _, p := range part {
		points = append(points, p.high)
	}
	for _, p := range slices.Backward(part) {
		points = append(points, p.low)
	}
	return points
}

// parts are the stretches in which both ends are known.
func (l drawnLine) parts(c draw.Canvas, low, high []float64) [][]pair {
	y := l.chart.Y
	if l.OnRight {
		y = *l.chart.Right
	}
	at := func(i int, v float64) vg.Point {
		if y.Log {
			v = max(v, y.Min)
		}
		return vg.Point{X: c.X(l.chart.X.norm(l.X[i])), Y: c.Y(y.norm(v))}
	}
	var parts [][]pair
	open := false
	for i := range l.X {
		if math.IsNaN(low[i]) || math.IsNaN(high[i]) {
			open = false
			continue
		}
		if !open {
			parts, open = append(parts, nil), true
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], pair{at(i, low[i]), at(i, high[i])})
	}
	return parts
}

// drawnMark is a mark of a chart.
type drawnMark struct {
	Mark
	chart Chart
}

// Plot implements the library's Plotter.
func (m drawnMark) Plot(c draw.Canvas, _ *plot.Plot) {
	at := func(x, y float64) vg.Point { return vg.Point{X: c.X(m.chart.X.norm(x)), Y: c.Y(m.chart.Y.norm(y))} }
	if !math.IsNaN(m.OffX) && !math.IsNaN(m.OffY) {
		thin := draw.LineStyle{Color: m.Style.Color, Width: 0.75}
		c.StrokeLines(thin, c.ClipLinesXY(
			[]vg.Point{at(m.X-m.OffX, m.Y), at(m.X+m.OffX, m.Y)},
			[]vg.Point{at(m.X, m.Y-m.OffY), at(m.X, m.Y+m.OffY)},
		)...)
	}
	m.Shape.draw(c, m.Style, at(m.X, m.Y))
	if m.Name != "" {
		c.FillText(style(textSize, draw.XLeft, draw.YBottom), at(m.X, m.Y).Add(vg.Point{X: 5, Y: 2}), m.Name)
	}
}

// draw draws the sign of a mark.
func (s Shape) draw(c draw.Canvas, look Style, at vg.Point) {
	glyph := draw.GlyphStyle{Color: look.Color, Radius: 3.5, Shape: draw.CircleGlyph{}}
	switch s {
	case Dot:
	case Ring:
		glyph.Shape, glyph.Radius = draw.RingGlyph{}, 6
	case Triangle:
		glyph.Shape, glyph.Radius = draw.PyramidGlyph{}, 4.5
	}
	c.DrawGlyphNoClip(glyph, at)
}
