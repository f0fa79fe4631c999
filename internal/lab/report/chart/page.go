// Package chart draws pages of charts, as SVG and as PNG. What is drawn is a function of the page
// to the byte: there are no dates and no random names in files.
package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// Page is a grid of charts under one title and one legend. Rows are filled from the left.
type Page struct {
	Title   string
	Note    string // a line below the title that describes what is drawn
	Columns int    // 1 or more
	Width   float64
	Height  float64 // of each chart, in points, with its title and axes
	Legend  []Entry
	Charts  []Chart
}

// Entry is one name of the legend: of a line unless it is of an area or a mark.
type Entry struct {
	Name  string
	Style Style
	Area  bool
	Mark  bool
	Shape Shape // of a mark
}

// Shape is what a mark looks like.
type Shape int

// The shapes there are.
const (
	Dot  Shape = iota
	Ring       // hollow, and wider than a dot, so that both can be seen in one place
	Triangle
)

// Chart is lines over one axis, of one or two measures.
type Chart struct {
	Title string
	X     Axis
	Y     Axis
	Right *Axis // of lines that are OnRight; nil without any
	Lines []Line
	Marks []Mark
}

// Axis is one of a chart. Max must be above Min, and Min above 0 on a logarithmic one.
type Axis struct {
	Label    string
	Min, Max float64
	Ticks    []Tick
	Log      bool
}

// Tick is a labelled place on an axis.
type Tick struct {
	At    float64
	Label string
}

// Line is one measure. Where Y is NaN there is none.
type Line struct {
	X, Y      []float64
	Low, High []float64 // of a band about the line; nil without one
	Style     Style
	Fill      bool // fill all below it instead of drawing a line
	OnRight   bool
}

// Mark is a point, and how far it may be off in both directions; NaN where that is not known.
type Mark struct {
	Name       string // beside it, if not empty
	X, Y       float64
	OffX, OffY float64
	Style      Style
	Shape      Shape
}

// Style is how a line looks.
type Style struct {
	Color color.NRGBA
	Width float64   // in points
	Dash  []float64 // lengths of strokes and gaps, in points; empty = unbroken
}

// Colours that colour-blind people can distinguish, by Okabe and Ito.
var (
	Black     = color.NRGBA{0, 0, 0, 255}
	Orange    = color.NRGBA{230, 159, 0, 255}
	SkyBlue   = color.NRGBA{86, 180, 233, 255}
	Green     = color.NRGBA{0, 158, 115, 255}
	Yellow    = color.NRGBA{240, 228, 66, 255}
	Blue      = color.NRGBA{0, 114, 178, 255}
	Vermilion = color.NRGBA{213, 94, 0, 255}
	Purple    = color.NRGBA{204, 121, 167, 255}
	Grey      = color.NRGBA{150, 150, 150, 255}
	Shade     = color.NRGBA{236, 236, 236, 255}
)

// faint is a colour for a band about a line of it.
func faint(c color.NRGBA) color.NRGBA {
	c.A = 50
	return c
}

// scalers have one look in all charts: what reacts is warm, what forecasts is cool, and bounds are grey.
var scalers = map[string]Style{
	"hpa-cpu":           {Color: Vermilion, Width: 1.5},
	"keda":              {Color: Orange, Width: 1.5},
	"paper":             {Color: Purple, Width: 1.5},
	"foresail-total":    {Color: Blue, Width: 2.2},
	"foresail-load":     {Color: SkyBlue, Width: 1.5},
	"foresail-replicas": {Color: Black, Width: 1.5},
	"foresail-direct":   {Color: Green, Width: 1.5},
	"keda/yesterday":    {Color: Yellow, Width: 1.5, Dash: []float64{5, 3}},
	"keda/last-week":    {Color: Yellow, Width: 1.5},
	"clairvoyant":       {Color: Grey, Width: 1.2, Dash: []float64{1, 2}},
	"instant":           {Color: Grey, Width: 1.2, Dash: []float64{6, 2}},
}

// Scaler returns the look of lines of a scaler, by its name, in every chart. A variation of a
// scaler, NAME/HOW, looks as that does, but dashed, unless it has a look of its own. It panics on a
// name without one.
func Scaler(name string) Style {
	if look, ok := scalers[name]; ok {
		return look
	}
	base, _, varied := strings.Cut(name, "/")
	look, ok := scalers[base]
	if !ok {
		panic(fmt.Sprintf("chart: scaler %q has no look", name))
	}
	if varied {
		look.Dash = []float64{5, 3}
	}
	return look
}
