package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/stack"
)

func chartOfRuns(t *testing.T) string {
	t.Helper()
	p := profileOfDefault(t)
	apps := applications()
	return chart(p, compare(runOf(apps[0], p, 20*time.Second, 80*time.Millisecond, 0),
		runOf(apps[1], p, 30*time.Second, 2300*time.Millisecond, 9)))
}

// elements returns the attributes of the elements of an XML document by their names.
func elements(t *testing.T, document string) map[string][]map[string]string {
	t.Helper()
	out := map[string][]map[string]string{}
	decoder := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok {
			attributes := map[string]string{}
			for _, a := range start.Attr {
				attributes[a.Name.Local] = a.Value
			}
			out[start.Name.Local] = append(out[start.Name.Local], attributes)
		}
	}
}

func TestChartIsSmallAndNeedsNothingElse(t *testing.T) {
	document := chartOfRuns(t)
	assert.Less(t, len(document), 40_000)
	for _, foreign := range []string{"href", "url(", "@import", "<script", "<image"} {
		assert.NotContains(t, document, foreign)
	}
	assert.Contains(t, document, "prefers-color-scheme:dark")
	assert.NotContains(t, document, "NaN")
}

func TestChartDrawsBothRuns(t *testing.T) {
	all := elements(t, chartOfRuns(t))
	classes := map[string]int{}
	for _, p := range all["path"] {
		classes[p["class"]]++
		assert.NotEmpty(t, p["d"])
	}
	assert.Equal(t, 3, classes["p"], "legend, pods, load")
	assert.Equal(t, 3, classes["r"])
	for _, once := range []string{"need", "limit", "p ask", "r ask", "over", "pover"} {
		assert.Equal(t, 1, classes[once], once)
	}
}

func TestChartStaysWithinItsPage(t *testing.T) {
	all := elements(t, chartOfRuns(t))
	within := func(text string, most float64) {
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		assert.True(t, v >= 0 && v <= most, text)
	}
	for _, text := range all["text"] {
		within(text["x"], chartWidth)
		within(text["y"], chartHeight)
	}
	for _, p := range all["path"] {
		for _, point := range strings.FieldsFunc(p["d"],
			func(r rune) bool { return strings.ContainsRune("MLHVZh", r) }) {
			for i, v := range strings.Fields(point) {
				within(v, []float64{chartWidth, chartHeight}[i])
			}
		}
	}
}

func TestChartOfNothing(t *testing.T) {
	apps := applications()
	document := chart(profileOfDefault(t), compare(stack.Run{App: apps[0]}, stack.Run{App: apps[1]}))
	assert.NotEmpty(t, elements(t, document)["svg"])
	assert.NotContains(t, document, "NaN")
}
