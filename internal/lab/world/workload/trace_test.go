package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/world/workload"
)

func TestTraceIsInterpolated(t *testing.T) {
	r, err := workload.ReadTrace("shop",
		strings.NewReader("unix_seconds,value\n1700000000,10\n1700000060,30\n1700000120, 0\n"))
	require.NoError(t, err)
	assert.Equal(t, time.Unix(1700000000, 0).UTC(), r.Start)
	assert.Equal(t, time.Minute, r.Step)
	assert.Equal(t, 2*time.Minute, r.Length())
	assert.Equal(t, 30.0, r.Largest())
	for at, want := range map[int64]float64{-5: 10, 0: 10, 30_000: 20, 60_000: 30, 90_000: 15, 120_000: 0, 500_000: 0} {
		assert.InDelta(t, want, r.Rate(at), 1e-9, "%d ms", at)
	}
	twice := r.Scaled(2)
	assert.InDelta(t, 40, twice.Rate(30_000), 1e-9)
	assert.InDelta(t, 20, r.Rate(30_000), 1e-9, "the first must be as it was")

	p := r.Profile()
	assert.Equal(t, "shop", p.Name)
	assert.Equal(t, time.Minute, p.Span.Lead)
	assert.Equal(t, 2*time.Minute, p.Span.Length)
	assert.InDelta(t, 10, p.Load.Rate(0), 1e-9)
	assert.InDelta(t, 20, p.Load.Rate(90_000), 1e-9)
}

func TestCountsAreOfSecondsAndNotScaled(t *testing.T) {
	seconds, err := workload.ReadTrace("shop", strings.NewReader("unix_seconds,value\n0,6\n1,6\n"))
	require.NoError(t, err)
	minutes, err := workload.ReadTrace("shop", strings.NewReader("unix_seconds,value\n0,6\n60,6\n"))
	require.NoError(t, err)
	assert.True(t, seconds.Counts())
	assert.True(t, seconds.Scaled(1).Counts())
	assert.False(t, seconds.Scaled(0.1).Counts())
	assert.False(t, seconds.Scaled(0.1).Scaled(1).Counts())
	assert.False(t, minutes.Counts())
}

// Pods must not be hit at once by a load that they would have been scaled up for.
func TestLargeLoadBeginsWithALead(t *testing.T) {
	r, err := workload.ReadTrace("shop", strings.NewReader("unix_seconds,value\n0,600\n1,600\n"))
	require.NoError(t, err)
	p := r.Profile()
	assert.Equal(t, 4*time.Minute, p.Span.Lead)
	assert.InDelta(t, 100, p.Load.Rate(0), 1e-9)
	assert.InDelta(t, 600, p.Load.Rate(p.Span.Lead.Milliseconds()), 1e-9)
}

func TestRejectsTracesWithTheLine(t *testing.T) {
	const header = "unix_seconds,value\n"
	for text, want := range map[string]string{
		"":                                "it is empty: must be CSV with the header",
		"1,2\n3,4\n":                      `line 1: "1,2": must be CSV with the header "unix_seconds,requests_per_second"`,
		header:                            "0 lines after the header: must be at least 2",
		header + "1,2\n":                  "1 lines after the header: must be at least 2",
		header + "1,2\n\n2,-1\n":          `line 4: value: "-1": must be a number, 0 or more`,
		header + "1,2\n2,NaN\n":           `line 3: value: "NaN": must be a number`,
		header + "1,2\n2,Inf\n":           `line 3: value: "Inf": must be a number`,
		header + "1,2\n2,\n":              `line 3: value: "": must be a number`,
		header + "1,2\nnoon,2\n":          `line 3: unix_seconds: "noon": must be seconds since 1970`,
		header + "1,2\n1700000000123,2\n": `line 3: unix_seconds: "1700000000123": must be seconds since 1970`,
		header + "5,2\n4,2\n":             "line 3: unix_seconds: 4: must be after that of the line before (5)",
		header + "5,2\n5,2\n":             "line 3: unix_seconds: 5: must be after that of the line before (5)",
		header + "1,2,3\n":                "record on line 2: wrong number of fields",
		header + "1,1\n2,1\n3,1\n4,1\n60,1\n": "line 6: unix_seconds: 60: is 56s after the line before: must be at most 5s, 5 times the usual step; " +
			"add lines with 0 where nothing arrived, or cut the trace",
	} {
		_, err := workload.ReadTrace("shop", strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

func TestTraceIsNamedAfterItsFile(t *testing.T) {
	assert.Equal(t, "shop", workload.TraceName("traces/shop.csv"))
	assert.Equal(t, "shop", workload.TraceName("shop"))
}

func FuzzReadTrace(f *testing.F) {
	f.Add("unix_seconds,value\n1,2\n2,3\n")
	f.Add("unix_seconds,value\n1,2\n2,-3\n")
	f.Add("unix_seconds,value\n0,2\n10000000000,3\n") // longer than a time.Duration
	f.Fuzz(func(t *testing.T, text string) {
		r, err := workload.ReadTrace("fuzz", strings.NewReader(text))
		if err != nil {
			return
		}
		assert.GreaterOrEqual(t, r.Length(), time.Duration(0))
		for at := int64(0); at <= 5000; at += 500 {
			assert.GreaterOrEqual(t, r.Rate(at), 0.0)
		}
	})
}

func TestTraceOfPoints(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC) }
	trace, err := workload.NewTrace("web", []workload.Point{{at(0), 10}, {at(1), 20}, {at(2), 0}})
	require.NoError(t, err)
	assert.Equal(t, "web", trace.Name)
	assert.Equal(t, at(0), trace.Start)
	assert.Equal(t, time.Minute, trace.Step)
	assert.Equal(t, 2*time.Minute, trace.Length())
	assert.Equal(t, 15.0, trace.Rate(30_000))

	_, err = workload.NewTrace("web", []workload.Point{{at(0), 10}})
	assert.EqualError(t, err, "1 points: must be at least 2")
	_, err = workload.NewTrace("web", []workload.Point{{at(0), 10}, {at(1), 10}, {at(2), 10}, {at(8), 10}})
	assert.EqualError(t, err, "nothing is known between 2026-01-02T03:02:00Z and 2026-01-02T03:08:00Z: must be at most 5m0s, 5 times the usual step")
}

func TestRecordingHasGaps(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1_700_000_000+seconds, 0) }
	points := []workload.Point{{At: at(0), Rate: 1}, {At: at(15), Rate: 1}, {At: at(45), Rate: 3},
		{At: at(3600), Rate: 3}, {At: at(3615), Rate: 3}}
	_, err := workload.NewTrace("shop", points)
	require.ErrorContains(t, err, "nothing is known between")
	r, err := workload.NewRecording("shop", points, 30*time.Second)
	require.NoError(t, err)
	for seconds, known := range map[int64]bool{-1: false, 0: true, 30: true, 45: true, 46: false, 3599: false,
		3600: true, 3615: true, 3616: false} {
		assert.Equal(t, known, r.Known(seconds*1000), "%d s", seconds)
	}
	assert.InDelta(t, 2, r.Rate(30_000), 1e-9)
	assert.InDelta(t, 6, r.Scaled(2).Rate(3_600_000), 1e-9)
	assert.False(t, r.Scaled(2).Known(46_000), "gaps stay where they are")
	_, err = workload.NewRecording("shop", points[:1], time.Second)
	require.ErrorContains(t, err, "1 points: must be at least 2")
}
