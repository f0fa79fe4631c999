package loadgen

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func TestProfileRate(t *testing.T) {
	p := Ramp(10, 810, 100*time.Second, 50*time.Second)
	require.NoError(t, p.Validate())
	assert.Equal(t, 150*time.Second, p.Duration())
	for at, want := range map[time.Duration]float64{
		0: 10, 50 * time.Second: 410, 100 * time.Second: 810, 149 * time.Second: 810, 150 * time.Second: 0, -1: 0,
	} {
		assert.InDelta(t, want, p.Rate(at), 1e-9, "at %v", at)
	}
	assert.InDelta(t, 41000, p.Requests(100*time.Second), 1e-6)
	assert.InDelta(t, 10*50+8*50*50/2, p.Requests(50*time.Second), 1e-6)
	assert.InDelta(t, 41000+40500, p.Requests(time.Hour), 1e-6)
}

func TestProfileStep(t *testing.T) {
	p := Profile{{0, 5}, {10 * time.Second, 5}, {10 * time.Second, 20}, {20 * time.Second, 20}}
	require.NoError(t, p.Validate())
	assert.Equal(t, 5.0, p.Rate(10*time.Second-1))
	assert.Equal(t, 20.0, p.Rate(10*time.Second))
	assert.Equal(t, 250.0, p.Requests(20*time.Second))
}

func TestParseProfile(t *testing.T) {
	p, err := ParseProfile("0s:10, 150s:800,4m:800")
	require.NoError(t, err)
	assert.Equal(t, Ramp(10, 800, 150*time.Second, 90*time.Second), p)
	for text, want := range map[string]string{
		"":                 "must be time:rate",
		"0s":               "must be time:rate",
		"0s:1":             "at least two points",
		"1s:1,2s:1":        "the first at 0",
		"x:1,2s:1":         `invalid duration "x"`,
		"0s:x,2s:1":        "invalid syntax",
		"0s:-1,2s:1":       "must be 0 or above",
		"0s:NaN,2s:1":      "must be 0 or above",
		"0s:Inf,2s:1":      "finite",
		"0s:1,5s:1,2s:1":   "in order of time",
		"0s:1,2h:1":        "1h0m0s at most",
		"0s:1e6,10m:1e6":   "2000000 at most",
		"0s:1,0s:1":        "the last later",
		"0s:1,10s:1,20s:x": `point "20s:x"`,
	} {
		_, err := ParseProfile(text)
		require.ErrorContains(t, err, want, "profile %q", text)
	}
}

func TestEvenArrivals(t *testing.T) {
	due := slices.Collect(Constant(4, 2*time.Second).arrivals(false, 0))
	assert.Equal(t, []time.Duration{125 * ms, 375 * ms, 625 * ms, 875 * ms, 1125 * ms, 1375 * ms, 1625 * ms, 1875 * ms},
		due)
}

// TestArrivalsFollowTheProfile holds the number of arrivals so far against the integral of the
// rate, throughout profiles with ramps, steps, silence and slopes both ways.
func TestArrivalsFollowTheProfile(t *testing.T) {
	for _, p := range []Profile{
		Ramp(0, 800, 150*time.Second, 90*time.Second),
		Ramp(300, 0, 20*time.Second, 10*time.Second),
		{{0, 0}, {5 * time.Second, 0}, {5 * time.Second, 100}, {9 * time.Second, 100.001}, {9 * time.Second, 0},
			{20 * time.Second, 50}},
	} {
		require.NoError(t, p.Validate())
		due := slices.Collect(p.arrivals(false, 0))
		assert.InDelta(t, p.Requests(p.Duration()), len(due), 0.501)
		assert.True(t, slices.IsSorted(due))
		for k, at := range due {
			assert.InDelta(t, float64(k)+0.5, p.Requests(at), 1e-3, "arrival %d at %v", k, at)
		}
	}
}

func TestPoissonArrivals(t *testing.T) {
	p := Ramp(50, 150, 100*time.Second, 100*time.Second)
	due := slices.Collect(p.arrivals(true, 7))
	assert.Equal(t, due, slices.Collect(p.arrivals(true, 7)))
	assert.NotEqual(t, due, slices.Collect(p.arrivals(true, 8)))

	want := p.Requests(p.Duration())
	assert.InDelta(t, want, len(due), 4*math.Sqrt(want))
	// Counts per second of a Poisson process vary as much as they are large.
	counts := make([]float64, 200)
	for _, at := range due {
		counts[int(at/time.Second)]++
	}
	var dispersion float64
	for i, count := range counts[100:] {
		mean := p.Rate(time.Duration(100+i) * time.Second)
		dispersion += (count - mean) * (count - mean) / mean / 100
	}
	assert.InDelta(t, 1, dispersion, 0.5)
}
