package chart

import (
	"bytes"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// dpi is how many pixels an inch of a PNG has.
const dpi = 120

// Sizes in points.
const (
	margin      = 8
	titleSize   = 13
	noteSize    = 9
	textSize    = 8
	legendGap   = 14
	swatch      = 22
	rightWidth  = 32
	lineSpacing = 1.35
)

// WriteSVG draws the page as SVG.
func (p Page) WriteSVG(w io.Writer) error {
	c := vgsvg.New(p.size())
	p.paper(draw.New(c))
	p.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// WriteFragment draws the page as a part of a page of HTML: SVG without a declaration, on the
// background that is there.
func (p Page) WriteFragment(w io.Writer) error {
	c := vgsvg.New(p.size())
	p.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes()[bytes.Index(b.Bytes(), []byte("<svg")):])
	return err
}

// WritePNG draws the page as PNG.
func (p Page) WritePNG(w io.Writer) error {
	width, height := p.size()
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	p.paper(draw.New(c))
	p.draw(draw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

func (p Page) rows() int { return (len(p.Charts) + p.Columns - 1) / p.Columns }

func (p Page) size() (width, height vg.Length) {
	width = vg.Length(p.Width*float64(p.Columns)) + 2*margin
	return width, p.head(width) + vg.Length(p.Height*float64(p.rows())) + margin
}

// head is how much of the page's height title, note and legend take.
func (p Page) head(width vg.Length) vg.Length {
	lines := 1 + len(p.places(width-2*margin))
	return margin + lineSpacing*(titleSize+noteSize*vg.Length(lines)) + legendGap/2 + margin
}

// paper fills the background.
func (p Page) paper(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
}

func (p Page) draw(c draw.Canvas) {
	width := c.Max.X - c.Min.X
	y := c.Max.Y - margin
	c.FillText(style(titleSize, draw.XLeft, draw.YTop), vg.Point{X: margin, Y: y}, p.Title)
	y -= lineSpacing * titleSize
	c.FillText(style(noteSize, draw.XLeft, draw.YTop), vg.Point{X: margin, Y: y}, p.Note)
	y -= lineSpacing*noteSize + legendGap/2
	p.drawLegend(c, y)

	top := c.Max.Y - p.head(width)
	for i, chart := range p.Charts {
		left := margin + vg.Length(float64(i%p.Columns)*p.Width)
		upper := top - vg.Length(float64(i/p.Columns)*p.Height)
		chart.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left + 2, Y: upper - vg.Length(p.Height) + 4},
			Max: vg.Point{X: left + vg.Length(p.Width) - 6, Y: upper - 4},
		}})
	}
}

// places returns where each entry of the legend begins, line by line.
func (p Page) places(width vg.Length) [][]vg.Length {
	var lines [][]vg.Length
	x := vg.Length(0)
	for _, entry := range p.Legend {
		need := swatch + 4 + style(noteSize, draw.XLeft, draw.YTop).Width(entry.Name) + legendGap
		if len(lines) == 0 || x+need > width {
			lines, x = append(lines, nil), 0
		}
		last := len(lines) - 1
		lines[last] = append(lines[last], x)
		x += need
	}
	return lines
}

func (p Page) drawLegend(c draw.Canvas, y vg.Length) {
	i := 0
	for _, line := range p.places(c.Max.X - c.Min.X - 2*margin) {
		middle := y - noteSize/2
		for _, x := range line {
			entry, from := p.Legend[i], margin+x
			entry.draw(c, from, middle)
			c.FillText(style(noteSize, draw.XLeft, draw.YCenter), vg.Point{X: from + swatch + 4, Y: middle}, entry.Name)
			i++
		}
		y -= lineSpacing * noteSize
	}
}

// draw draws what an entry looks like, from a place to the right.
func (e Entry) draw(c draw.Canvas, x, y vg.Length) {
	switch {
	case e.Area:
		c.FillPolygon(e.Style.Color, []vg.Point{{X: x, Y: y - 4}, {X: x + swatch, Y: y - 4}, {X: x + swatch, Y: y + 4},
			{X: x, Y: y + 4}})
	case e.Mark:
		e.Shape.draw(c, e.Style, vg.Point{X: x + swatch/2, Y: y})
	default:
		c.StrokeLine2(e.Style.line(), x, y, x+swatch, y)
	}
}

func (ch Chart) draw(c draw.Canvas) {
	p := plot.New()
	p.BackgroundColor = nil // that of the page
	p.Title.Text = ch.Title
	p.Title.TextStyle = style(noteSize, draw.XCenter, draw.YTop)
	p.Title.TextStyle.Font.Weight = 3 // bold
	p.Title.Padding = 3
	ch.X.set(&p.X)
	ch.Y.set(&p.Y)
	p.Add(grid(ch))
	for _, l := range ch.Lines {
		p.Add(drawnLine{l, ch})
	}
	for _, m := range ch.Marks {
		p.Add(drawnMark{m, ch})
	}
	inner := c
	if ch.Right != nil {
		inner = draw.Crop(c, 0, -rightWidth, 0, 0)
	}
	p.Draw(inner)
	if ch.Right != nil {
		ch.Right.drawRight(c, p.DataCanvas(inner))
	}
}

// set makes an axis of the library's like this one.
func (a Axis) set(to *plot.Axis) {
	to.Min, to.Max = a.Min, a.Max
	to.Label.Text = a.Label
	to.Label.TextStyle.Font = style(textSize, 0, 0).Font
	to.Label.Padding = 2
	to.Tick.Label.Font = style(textSize, 0, 0).Font
	to.Padding = 0
	to.Width, to.Tick.Width, to.Tick.Length = 0.5, 0.5, 3
	if a.Log {
		to.Scale = plot.LogScale{}
	}
	var ticks plot.ConstantTicks
	for _, t := range a.Ticks {
		ticks = append(ticks, plot.Tick{Value: t.At, Label: t.Label})
	}
	to.Tick.Marker = ticks
}

// norm places a value between 0 and 1 on the axis.
func (a Axis) norm(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Min) / math.Log(a.Max/a.Min)
	}
	return (v - a.Min) / (a.Max - a.Min)
}

// drawRight draws the axis at the right of the data, which the library has none for.
func (a Axis) drawRight(c, data draw.Canvas) {
	thin := draw.LineStyle{Color: color.Black, Width: 0.5}
	x := data.Max.X
	c.StrokeLine2(thin, x, data.Min.Y, x, data.Max.Y)
	for _, t := range a.Ticks {
		y := data.Y(a.norm(t.At))
		c.StrokeLine2(thin, x, y, x+3, y)
		c.FillText(style(textSize, draw.XLeft, draw.YCenter), vg.Point{X: x + 5, Y: y}, t.Label)
	}
	label := style(textSize, draw.XCenter, draw.YBottom)
	label.Rotation = -math.Pi / 2
	c.FillText(label, vg.Point{X: c.Max.X - textSize - 1, Y: (data.Min.Y + data.Max.Y) / 2}, a.Label)
}

func (s Style) line() draw.LineStyle {
	l := draw.LineStyle{Color: s.Color, Width: vg.Length(s.Width)}
	for _, d := range s.Dash {
		l.Dashes = append(l.Dashes, vg.Length(d))
	}
	return l
}

// style is of text without serifs.
func style(size float64, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: color.Black, XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler,
		Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Length(size)),
	}
}
