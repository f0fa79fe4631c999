package main

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// runOf is a run of 200 s in which a replica is added every so often, up to 9, ready at once.
func runOf(a stack.App, p loadgen.Profile, every, p90 time.Duration, failed int) stack.Run {
	r := stack.Run{App: a}
	for s := 1; s <= 200; s++ {
		m := stack.Moment{At: time.Duration(s) * time.Second}
		m.Rate = p.Rate(m.At)
		m.Replicas = min(9, 4+int(m.At/every))
		m.Ready = m.Replicas
		m.Load = m.Rate * a.ServiceTime.Seconds() / float64(m.Ready)
		r.Moments = append(r.Moments, m)
	}
	r.Report.Counts = loadgen.Counts{Sent: 10000, OK: 10000 - failed, Failed: failed}
	r.Report.Latency = loadgen.Latency{Count: 10000, P50: 45 * time.Millisecond, P90: p90, P99: 2 * p90}
	return r
}

func comparisonOf(t *testing.T, predicted, reactive stack.Run) comparison {
	t.Helper()
	c := compare(predicted, reactive)
	for row := range strings.Lines(c.summary()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(row, "\n")), 80, row)
		assert.NotContains(t, row, "NaN")
	}
	return c
}

func TestVerdictSaysWhichWayItWent(t *testing.T) {
	p := profileOfDefault(t)
	apps := applications()
	early := runOf(apps[0], p, 20*time.Second, 80*time.Millisecond, 0)
	late := runOf(apps[1], p, 30*time.Second, 2300*time.Millisecond, 150)

	helped := comparisonOf(t, early, late)
	assert.Regexp(t, `^In this run the forecast helped: replicas were asked for 30 s earlier on average, the load was above the threshold for \d+ s `+
		`instead of \d+ s, p90 was 80 ms instead of 2\.3 s, p99 160 ms instead of 4\.6 s, and the requests without a good answer were 0 instead of 150, for \d+ % more pod-seconds\.$`, helped.verdict())

	harmed := comparisonOf(t, late, early)
	assert.Contains(t, harmed.verdict(), "the forecast did harm: replicas were asked for 30 s later")
	assert.Contains(t, harmed.verdict(), "% fewer pod-seconds")

	same := comparisonOf(t, early, early)
	assert.Contains(t, same.verdict(), "made no difference worth the name: replicas were asked for at the same time")
	assert.Contains(t, same.verdict(), "p90 was 80 ms either way")
	assert.Contains(t, same.verdict(), "the same pod-seconds")

	failing := early
	failing.Report.Failed = 500
	mixed := comparisonOf(t, failing, late)
	assert.Contains(t, mixed.verdict(), "helped in some respects and did harm in others:")
}

func TestRises(t *testing.T) {
	p := profileOfDefault(t)
	apps := applications()
	predicted := runOf(apps[0], p, 20*time.Second, time.Second, 0)
	reactive := runOf(apps[1], p, 50*time.Second, time.Second, 0)
	c := comparisonOf(t, predicted, reactive)
	rows := strings.Split(strings.TrimRight(c.rises(), "\n"), "\n")
	want := [][]string{
		{"replicas", "asked", "for", "after", "predicted", "reactive", "earlier", "by"},
		{"5", "0:20", "0:50", "30", "s"},
		{"6", "0:40", "1:40", "60", "s"},
		{"7", "1:00", "2:30", "90", "s"},
		{"8", "1:20", "3:20", "120", "s"},
		{"9", "1:40", "never", "-"},
		{"on", "average", "75", "s"},
	}
	assert.Len(t, rows, len(want))
	for i, row := range rows {
		assert.Equal(t, want[i], strings.Fields(row))
	}
	assert.NotContains(t, compare(stack.Run{}, stack.Run{}).rises(), "average", "nothing to average")
}

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{-300 * time.Millisecond: "0 s", 1600 * time.Millisecond: "2 s",
		-15 * time.Second: "-15 s"} {
		assert.Equal(t, want, wholeSeconds(d))
	}
}

func TestSummaryOfARunWithoutRequests(t *testing.T) {
	apps := applications()
	empty := compare(stack.Run{App: apps[0]}, stack.Run{App: apps[1]})
	assert.NotContains(t, empty.summary(), "NaN")
	assert.Equal(t, "-", percent(math.NaN()))
}

func TestSummarySaysThatTheMachineWasBusy(t *testing.T) {
	p := profileOfDefault(t)
	run := runOf(applications()[0], p, 20*time.Second, time.Second, 0)
	assert.NotContains(t, compare(run, run).summary(), "too busy")
	thin := run
	thin.Moments = nil
	for i := 0; i < len(run.Moments); i += 3 {
		thin.Moments = append(thin.Moments, run.Moments[i])
	}
	assert.Contains(t, compare(thin, run).summary(), "too busy to look at more than 67 of 199 seconds")
}
