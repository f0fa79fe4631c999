package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/test/env/stack"
)

func TestBar(t *testing.T) {
	for value, want := range map[float64]string{
		0:    "▕    ┃     ▏",
		0.25: "▕██▌ ┃     ▏",
		0.5:  "▕████┃     ▏",
		0.9:  "▕████┃████ ▏",
		5:    "▕████┃█████▏",
	} {
		l := bar(value, 0.45, 1, 10)
		assert.Equal(t, want, l.Render(false), "%g", value)
		assert.Equal(t, 12, l.Width())
	}
	assert.Equal(t, bad, bar(0.46, 0.45, 1, 10)[1].Style)
	assert.Equal(t, good, bar(0.45, 0.45, 1, 10)[1].Style, "at the threshold is not above it")
}

func TestGraph(t *testing.T) {
	values := []float64{0, 0.01, 1, 2, 4, 9, math.NaN()}
	rows := graph(values, 2, 4, 1)
	assert.Equal(t, " ▁▂▄██ ", rows[0].Render(false))
	rows = graph(values, 2, 4, 2)
	assert.Equal(t, "    ██ ", rows[0].Render(false))
	assert.Equal(t, " ▁▄███ ", rows[1].Render(false))
	assert.Equal(t, bad, rows[1][1].Style, "what is above the mark stands out")
}

func TestOverTime(t *testing.T) {
	moments := []stack.Moment{}
	for _, s := range []int{1, 2, 9, 10} {
		m := stack.Moment{At: time.Duration(s) * time.Second}
		m.Replicas = s
		moments = append(moments, m)
	}
	replicas := func(m stack.Moment) float64 { return float64(m.Replicas) }
	values := overTime(moments, 20*time.Second, 10, replicas)
	assert.Equal(t, []float64{1, 2, 2, 2, 9, 10}, values[:6], "gaps keep what was before")
	for _, v := range values[6:] {
		assert.True(t, math.IsNaN(v), "the future is not zero")
	}
	assert.NotPanics(t, func() {
		overTime([]stack.Moment{{At: 25 * time.Second}}, 20*time.Second, 10, replicas)
	})
}

func TestProgress(t *testing.T) {
	assert.Equal(t, "━━━━━─────", progress(0.5, 10).Render(false))
	assert.Equal(t, "━━━━━━━━━━", progress(1.2, 10).Render(false))
	assert.Equal(t, "", progress(0.5, 0).Render(false))
}
