package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/report/chart"
	"github.com/foresail/foresail/internal/lab/scaler"
)

func page() chart.Page {
	nan := math.NaN()
	right := chart.Linear("pods", 20)
	look := chart.Style{Color: chart.Blue, Width: 1}
	one := chart.Chart{
		Title: "one & only", X: chart.Seconds("seconds", 60), Y: chart.Linear("busy share", 1), Right: &right,
		Lines: []chart.Line{
			{X: []float64{0, 30, 60}, Y: []float64{1, 0, 1}, Style: chart.Style{Color: chart.Shade}, Fill: true},
			{X: []float64{0, 20, 40, 60}, Y: []float64{0.5, nan, 0.6, 0.7}, Low: []float64{0.4, nan, 0.5, 0.6},
				High: []float64{0.6, nan, 0.7, 2}, Style: look},
			{X: []float64{0, 60}, Y: []float64{4, 20},
				Style: chart.Style{Color: chart.Green, Width: 1, Dash: []float64{2, 1}}, OnRight: true},
			{X: []float64{0, 60}, Y: []float64{nan, nan}, Style: look},
		},
	}
	two := chart.Chart{
		Title: "two", X: chart.Milliseconds("time", 1, 4), Y: chart.Between("success, %", 90, 97),
		Marks: []chart.Mark{
			{Name: "keda", X: 100, Y: 95, OffX: 10, OffY: 1, Style: look},
			{X: 1000, Y: 91, OffX: nan, OffY: nan, Style: look, Shape: chart.Ring},
			{X: 2000, Y: 91, OffX: nan, OffY: nan, Style: look, Shape: chart.Triangle},
		},
		Lines: []chart.Line{{X: []float64{10, 10000}, Y: []float64{91, 92}, Style: look}},
	}
	return chart.Page{
		Title: "Title <1>", Note: "A note.", Columns: 2, Width: 200, Height: 150,
		Legend: []chart.Entry{
			{Name: "load", Style: chart.Style{Color: chart.Shade}, Area: true}, {Name: "line", Style: look},
			{Name: "mark", Style: look, Mark: true, Shape: chart.Ring},
			{Name: strings.Repeat("long ", 12), Style: look},
		},
		Charts: []chart.Chart{one, two, one},
	}
}

func TestAPageIsAPicture(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, page().WritePNG(&out))
	picture, err := png.Decode(&out)
	require.NoError(t, err)
	colours := map[[3]uint32]bool{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	for name, c := range map[string][3]uint32{"background": {255, 255, 255}, "load": {236, 236, 236},
		"line": {0, 114, 178}, "right": {0, 158, 115}} {
		assert.Contains(t, colours, c, name)
	}
	assert.Greater(t, picture.Bounds().Dx(), 400)
}

func TestAPageIsXML(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, page().WriteSVG(&out))
	text := out.String()
	decoder := xml.NewDecoder(&out)
	words := ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if word, ok := token.(xml.CharData); ok {
			words += string(word) + "\n"
		}
	}
	for _, want := range []string{"Title <1>", "A note.", "one & only", "busy share", "pods", "100 ms", "keda",
		"seconds", "load"} {
		assert.Contains(t, words, want)
	}
	assert.NotContains(t, text, "NaN")
	assert.NotContains(t, text, "Inf")
}

// A page of HTML may be dark.
func TestAFragmentHasNoBackground(t *testing.T) {
	var whole, fragment bytes.Buffer
	require.NoError(t, page().WriteSVG(&whole))
	require.NoError(t, page().WriteFragment(&fragment))
	assert.Equal(t, 1, strings.Count(whole.String(), "#FFFFFF"))
	assert.Zero(t, strings.Count(fragment.String(), "#FFFFFF"))
	assert.True(t, strings.HasPrefix(fragment.String(), "<svg"))
}

func TestPagesAreTheSameToTheByte(t *testing.T) {
	for _, write := range []func(chart.Page,
		io.Writer) error{chart.Page.WriteSVG, chart.Page.WriteFragment, chart.Page.WritePNG} {
		var a, b bytes.Buffer
		require.NoError(t, write(page(), &a))
		require.NoError(t, write(page(), &b))
		assert.Equal(t, a.Bytes(), b.Bytes())
	}
}

func TestAxesHaveRoundEnds(t *testing.T) {
	labels := func(a chart.Axis) string {
		var labels []string
		for _, tick := range a.Ticks {
			labels = append(labels, tick.Label)
		}
		return strings.Join(labels, " ")
	}
	for want, a := range map[string]chart.Axis{
		"0.0 0.2 0.4 0.6 0.8 1.0":            chart.Linear("", 1),
		"0 5 10 15 20":                       chart.Linear("", 20),
		"0 20 40 60 80 100":                  chart.Linear("", 100),
		"0.0 0.2 0.4 0.6 0.8":                chart.Linear("", 0.7),
		"0 60 120 180 240":                   chart.Seconds("", 270),
		"0 30 60 90 120":                     chart.Seconds("", 130),
		"0 150 300 450 600 750":              chart.Seconds("", 850),
		"1300 1350 1400 1450 1500 1550 1600": chart.Between("", 1310, 1590),
		"-1.0 -0.5 0.0 0.5 1.0":              chart.Between("", 0, 0),
		"10 ms 100 ms 1 s 10 s":              chart.Milliseconds("", 1, 4),
		"2.0 2.1 2.2 2.3 2.4 2.5":            chart.Fitting("", 2, 2.5),
		"0 1 2 3 4 5":                        chart.Fitting("", 2, 5),
		"3.0 3.5 4.0 4.5 5.0":                chart.Fitting("", 4, 4),
	} {
		assert.Equal(t, want, labels(a))
	}
	assert.Equal(t, 270.0, chart.Seconds("", 270).Max)
	for _, nothing := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		assert.Equal(t, 1.0, chart.Linear("", nothing).Max)
	}
}

func TestScalersLookDifferent(t *testing.T) {
	looks := map[string]string{}
	for _, name := range scaler.AllNames() {
		look := chart.Scaler(name)
		key := fmt.Sprint(look.Color, look.Dash)
		assert.NotContains(t, looks, key, "%s looks like %s", name, looks[key])
		looks[key] = name
	}
	assert.Panics(t, func() { chart.Scaler("nobody") })
}
