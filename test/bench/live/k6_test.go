package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// summary is what k6 1.8 hands to handleSummary, without what is not read.
const summary = `{"root_group": {"name": ""}, "metrics": {
"http_req_duration": {"type": "trend", "contains": "time", "values": {"avg": 9, "p(50)": 9, "p(90)": 9, "p(99)": 9}},
"http_req_duration{scenario:main}": {"type": "trend", "contains": "time",
  "values": {"avg": 167.25, "p(50)": 26, "p(90)": 317.5, "p(99)": 1970}, "thresholds": {"max>=0": {"ok": true}}},
"http_req_failed{scenario:main}": {"type": "rate", "contains": "default", "values": {"rate": 0.01, "passes": 10, "fails": 990}},
"dropped_iterations{scenario:main}": {"type": "counter", "contains": "default", "values": {"count": 7, "rate": 0.1}}}}`

func TestSummaryOfK6(t *testing.T) {
	o, err := parseSummary([]byte(summary))
	require.NoError(t, err)
	assert.Equal(t, outcome{Sent: 1000, Failed: 10, Dropped: 7, Mean: 167.25, P50: 26, P90: 317.5, P99: 1970}, o)
	assert.InDelta(t, 0.99, o.Success(), 1e-12)

	_, err = parseSummary([]byte(`{"metrics": {"http_req_failed{scenario:main}": {"values": {"fails": 5}}}}`))
	require.ErrorContains(t, err, "no p(99) of http_req_duration{scenario:main}")
	require.ErrorContains(t, err, "no passes of http_req_failed{scenario:main}")
	_, err = parseSummary([]byte("nothing"))
	require.ErrorContains(t, err, "summary of k6")

	assert.True(t, math.IsNaN(outcome{}.Success()), "of no requests nothing is known")
}

func TestPlanForK6(t *testing.T) {
	ps, err := profilesNamed([]string{"ramp", "spike"})
	require.NoError(t, err)
	assert.Equal(t, k6Plan{
		Lead: "1m0s", First: 100, Timeout: "10s", Users: 2000,
		Stages: []k6Stage{{"30s", 10}, {"2m30s", 800}, {"1m30s", 800}},
	}, k6PlanOf(ps[0], time.Minute, 2000))
	plan := k6PlanOf(ps[1].divided(4).shortened(2), time.Minute, 500)
	assert.Zero(t, plan.First)
	assert.Equal(t, []k6Stage{{"5s", 200}, {"1m0s", 200}}, plan.Stages)
	assert.InDelta(t, 800, ps[1].load[1].RPS, 0, "the original is as it was")
}
