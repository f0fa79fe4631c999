package predictedmetric

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// healthy is the snapshot of a metric that asks for two more replicas.
func healthy() snapshot.Snapshot {
	return snapshot.Snapshot{
		Threshold: 0.7, StaleAfter: 30 * time.Second, NewestSample: now.Add(-800 * time.Millisecond), Ready: 4,
		SamplesPerSecond: 4, InitTimeout: 20 * time.Second,
		Forecast: pipeline.Forecast{
			Level: 2.41234, Trend: 0.0317, Horizon: 45 * time.Second, Target: 4, Active: 4,
			LoadNow: 0.6031, LoadPredicted: 0.88123, Required: 5.2,
		},
		Decision: pipeline.Decision{Direction: pipeline.Horizontal, Wanted: 6, Action: pipeline.ScaleUp, Reason: pipeline.AboveThreshold},
	}
}

func conditionsOf(s v1alpha1.PredictedMetricStatus) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

func TestStatusOfAForecast(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	s := statusOf(pm, problem{}, healthy(), true, now)
	assert.Equal(t, map[string]string{
		"Ready": "True ForecastServed", "SamplesFresh": "True SamplesArrive", "TargetFound": "True ScaleRead",
	}, conditionsOf(s))
	assert.Equal(t, int64(3), s.ObservedGeneration)
	assert.Equal(t, "603m", s.Current.String())
	assert.Equal(t, "881m", s.Predicted.String())
	assert.Equal(t, "2410m", s.Level.String())
	assert.Equal(t, "32m", s.Trend.String())
	assert.Equal(t, int32(4), *s.Replicas)
	assert.Equal(t, int32(6), *s.WantedReplicas)
	assert.Equal(t, 45*time.Second, s.Horizon.Duration)
	assert.Equal(t, 800*time.Millisecond, s.SampleAge.Duration)
	require.NotNil(t, s.LastDecision)
	assert.Equal(t, "6 replicas instead of 4, the predicted load is above the threshold: "+
		"0.603 a pod now, 0.881 in 45s with 4 replicas, threshold 0.7", s.LastDecision.Message)
}

func TestConditions(t *testing.T) {
	failing := []snapshot.Failure{{Pod: "a", Err: errors.New("refused")}}
	unavailable := func(r snapshot.Reason) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { s.Err = &snapshot.Unavailable{Reason: r, Message: "why"} }
	}
	for _, c := range []struct {
		name    string
		problem problem
		change  func(*snapshot.Snapshot)
		unknown bool
		want    map[string]string
	}{
		{"not looked at", problem{}, nil, true, map[string]string{"Ready": "Unknown Pending", "SamplesFresh": "Unknown Pending", "TargetFound": "Unknown Pending"}},
		{"bad spec", problem{err: errors.New("x")}, nil, true, map[string]string{"Ready": "False InvalidSpec", "SamplesFresh": "Unknown Pending", "TargetFound": "Unknown Pending"}},
		{"no target", problem{target: true, err: errors.New("x")}, unavailable(snapshot.NoReadyPods), false, map[string]string{"Ready": "False ScaleUnreadable", "SamplesFresh": "True SamplesArrive", "TargetFound": "False ScaleUnreadable"}},
		{"target for once unreadable", problem{target: true, err: errors.New("x")}, nil, false, map[string]string{"Ready": "True ForecastServed", "SamplesFresh": "True SamplesArrive", "TargetFound": "False ScaleUnreadable"}},
		{"no sample yet", problem{}, func(s *snapshot.Snapshot) {
			unavailable(snapshot.WaitingForSamples)(s)
			s.NewestSample = time.Time{}
		}, false, map[string]string{"Ready": "False WaitingForSamples", "SamplesFresh": "False WaitingForSamples", "TargetFound": "True ScaleRead"}},
		{"stale", problem{}, func(s *snapshot.Snapshot) {
			unavailable(snapshot.Stale)(s)
			s.NewestSample = now.Add(-31 * time.Second)
		}, false, map[string]string{"Ready": "False Stale", "SamplesFresh": "False Stale", "TargetFound": "True ScaleRead"}},
		{"one pod silent", problem{}, func(s *snapshot.Snapshot) { s.Failing = failing }, false, map[string]string{"Ready": "True ForecastServed", "SamplesFresh": "True SomePodsUnreadable", "TargetFound": "True ScaleRead"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			if c.change != nil {
				c.change(&s)
			}
			assert.Equal(t, c.want, conditionsOf(statusOf(&v1alpha1.PredictedMetric{}, c.problem, s, !c.unknown, now)))
		})
	}
}

func TestConditionsNameUnreadablePods(t *testing.T) {
	s := healthy()
	for _, pod := range []string{"a", "b", "c", "d", "e"} {
		s.Failing = append(s.Failing, snapshot.Failure{Pod: pod, Err: errors.New("refused")})
	}
	status := statusOf(&v1alpha1.PredictedMetric{}, problem{}, s, true, now)
	fresh := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSamplesFresh)
	assert.Equal(t, "samples arrive, but not from every pod; pod a: refused; pod b: refused; pod c: refused; and 2 more", fresh.Message)
}

// A forecast that fails takes its numbers with it, but not the decision that was made last.
func TestNumbersOfAFailedForecastAreAbsent(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Status = statusOf(pm, problem{}, healthy(), true, now)
	s := healthy()
	s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "why"}
	status := statusOf(pm, problem{}, s, true, now.Add(time.Minute))
	assert.Nil(t, status.Predicted)
	assert.Nil(t, status.WantedReplicas)
	assert.Equal(t, pm.Status.LastDecision, status.LastDecision)
}

func TestLastDecisionStaysWhileItIsTheSame(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Status = statusOf(pm, problem{}, healthy(), true, now)
	s := healthy()
	s.Forecast.LoadPredicted = 0.9
	status := statusOf(pm, problem{}, s, true, now.Add(time.Second))
	assert.Equal(t, pm.Status.LastDecision, status.LastDecision)
	assert.False(t, pressing(&pm.Status, &status), "numbers alone do not press")
	s.Decision.Wanted = 7
	status = statusOf(pm, problem{}, s, true, now.Add(2*time.Second))
	assert.Equal(t, int32(7), status.LastDecision.Wanted)
	assert.True(t, pressing(&pm.Status, &status))
}

func TestQuantityKeepsThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.12345: "123m", 1.23456: "1230m", 123.456: "123", 1234.5: "1230", -2.5: "-2500m", 0.0004: "0", 1e9: "1G",
	} {
		assert.Equal(t, want, quantity(v).String(), "%v", v)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e30} {
		assert.Nil(t, quantity(v), "%v", v)
	}
}

func TestSamplesFine(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	of := func(every, late, horizon time.Duration) string {
		s := healthy()
		s.SampleInterval, s.SampleDelay, s.Forecast.Horizon = every, late, horizon
		pm.Status = statusOf(pm, problem{}, s, true, now)
		return conditionsOf(pm.Status)["SamplesFine"]
	}
	assert.Empty(t, of(0, 0, 45*time.Second), "nothing is known yet")
	assert.Equal(t, "True FineEnough", of(time.Second, time.Second, 45*time.Second))
	assert.Equal(t, "True FineEnough", of(5*time.Second, 6*time.Second, 45*time.Second))
	assert.Equal(t, "False TooCoarse", of(15*time.Second, 8*time.Second, 45*time.Second))
	assert.Equal(t, "True FineEnough", of(15*time.Second, 8*time.Second, 90*time.Second), "a longer horizon bears it")
	assert.Equal(t, "False TooCoarse", of(15*time.Second, 8*time.Second, 45*time.Second))
	assert.Equal(t, "False TooCoarse", of(15*time.Second, 8*time.Second, 0), "stays while there is no forecast")
	for _, c := range pm.Status.Conditions {
		if c.Type == "SamplesFine" {
			assert.Contains(t, c.Message, "samples are 15s apart and come 8s late: a change shows after 38s")
		}
	}
}

func TestStatusTellsWhichMetricDrives(t *testing.T) {
	h := healthy()
	h.Joint = snapshot.Joint{Wanted: 9, DrivenBy: "heap", Metrics: 2}
	s := statusOf(&v1alpha1.PredictedMetric{}, problem{}, h, true, now)
	assert.Equal(t, int32(6), *s.WantedReplicas)
	assert.Equal(t, int32(9), *s.TargetWantedReplicas)
	assert.Equal(t, "heap", s.DrivenBy)
}

func TestTroubleIsTold(t *testing.T) {
	h := healthy()
	h.Trouble = errors.New("connection refused")
	s := statusOf(&v1alpha1.PredictedMetric{}, problem{}, h, true, now)
	assert.Equal(t, "True SourceFailing", conditionsOf(s)["SamplesFresh"])
	h.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "old"}
	s = statusOf(&v1alpha1.PredictedMetric{}, problem{}, h, true, now)
	for _, c := range s.Conditions {
		if c.Type == "Ready" {
			assert.Equal(t, "old; connection refused", c.Message)
		}
	}
}
