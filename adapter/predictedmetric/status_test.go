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

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// healthy is the snapshot of a metric that asks for two more replicas.
func healthy() snapshot.Snapshot {
	return snapshot.Snapshot{
		Threshold: 0.7, StaleAfter: 30 * time.Second, NewestSample: now.Add(-800 * time.Millisecond), Ready: 4,
		SamplesPerSecond: 4, StartupTime: 20 * time.Second,
		Forecast: pipeline.Forecast{
			Level: 2.41234, Trend: 0.0317, Horizon: 45 * time.Second, Target: 4, Active: 4,
			LoadNow: 0.6031, LoadPredicted: 0.88123, Required: 5.2, PlannedLoad: 3.64,
			Need: pipeline.Need{Load: 3.64, Margin: 0.115, PerInstance: 0.7, Min: 5.1, Max: 5.5},
		},
		Decision: pipeline.Decision{Direction: pipeline.Steady, Desired: 6, Action: pipeline.ScaleUp,
			Reason: pipeline.AboveThreshold},
	}
}

func conditionsOf(s v1alpha1.PredictedMetricStatus) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

// What is learned, and how often pods were too few, is told without digits that change at each tick.
func TestStatusOfWhatWasLearned(t *testing.T) {
	known := healthy()
	known.Learned = 5*time.Hour + 3*time.Minute + 7*time.Second
	known.Accuracy.LastDay = pipeline.Score{Judged: 3 * time.Hour, Error: 1, Naive: 2,
		LateKnown: 3 * time.Hour, Late: 0.00814}
	s := statusOf(&v1alpha1.PredictedMetric{}, problem{}, known, true, now)
	assert.Equal(t, 5*time.Hour+3*time.Minute, s.Learned.Duration)
	assert.Equal(t, "0.8%", s.Late)
}

// The bounds of schedules are known without a forecast, and written at once when they are others.
func TestStatusOfBounds(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Status = statusOf(pm, problem{}, healthy(), true, now)
	assert.Nil(t, pm.Status.MinReplicas, "without schedules those of the spec hold")
	s := healthy()
	s.Err = &snapshot.Unavailable{Reason: snapshot.WaitingForSamples}
	s.Bounds = &pipeline.Bounds{Min: 2, Max: math.MaxInt32}
	pm.Status = statusOf(pm, problem{}, s, true, now)
	assert.EqualValues(t, 2, *pm.Status.MinReplicas)
	assert.Nil(t, pm.Status.MaxReplicas, "there is no limit")
	assert.Empty(t, pm.Status.ActiveSchedules)

	s.Bounds, s.ActiveSchedules = &pipeline.Bounds{Min: 30, Max: 100}, []string{"black-friday"}
	status := statusOf(pm, problem{}, s, true, now.Add(time.Second))
	assert.EqualValues(t, 30, *status.MinReplicas)
	assert.EqualValues(t, 100, *status.MaxReplicas)
	assert.Equal(t, []string{"black-friday"}, status.ActiveSchedules)
	assert.True(t, urgent(&pm.Status, &status))
	assert.False(t, urgent(&status, &status))
}

func TestStatusOfAForecast(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
	s := statusOf(pm, problem{generation: 3}, healthy(), true, now)
	assert.Equal(t, map[string]string{
		"Ready": "True ForecastServed", "SamplesFresh": "True SamplesArriving", "TargetFound": "True ScaleRead",
		"HorizonSufficient": "True CoversStartup",
	}, conditionsOf(s))
	assert.Equal(t, int64(3), s.ObservedGeneration, "the one that has been processed")
	assert.Equal(t, int64(3), s.Conditions[0].ObservedGeneration)
	assert.Equal(t, "603m", s.Current.String())
	assert.Equal(t, "881m", s.Predicted.String())
	assert.Equal(t, "2410m", s.Level.String())
	assert.Equal(t, "32m", s.Trend.String())
	assert.Equal(t, int32(4), *s.Replicas)
	assert.Equal(t, int32(6), *s.DesiredReplicas)
	assert.Equal(t, 45*time.Second, s.Horizon.Duration)
	assert.Nil(t, s.Learned)
	assert.Empty(t, s.Late, "nothing has been judged")
	assert.Equal(t, 800*time.Millisecond, s.SampleAge.Duration)
	require.NotNil(t, s.LastDecision)
	assert.Equal(
		t, "6 replicas instead of 4: planned load 3.64 (forecast 3.525 in 45s + margin 0.115) / threshold 0.7 = 5.2 replicas",
		s.LastDecision.Message)
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
		{"not looked at", problem{}, nil, true,
			map[string]string{"Ready": "Unknown Pending", "SamplesFresh": "Unknown Pending",
				"TargetFound": "Unknown Pending"}},
		{"bad spec", problem{err: errors.New("x")}, nil, true,
			map[string]string{"Ready": "False InvalidSpec", "SamplesFresh": "Unknown Pending",
				"TargetFound": "Unknown Pending"}},
		{"no target", problem{target: true, err: errors.New("x")}, unavailable(snapshot.NoReadyPods), false,
			map[string]string{"Ready": "False ScaleUnreadable", "SamplesFresh": "True SamplesArriving",
				"TargetFound": "False ScaleUnreadable"}},
		{"target for once unreadable", problem{target: true, err: errors.New("x")}, nil, false,
			map[string]string{"HorizonSufficient": "True CoversStartup", "Ready": "True ForecastServed",
				"SamplesFresh": "True SamplesArriving", "TargetFound": "False ScaleUnreadable"}},
		{"no sample yet", problem{}, func(s *snapshot.Snapshot) {
			unavailable(snapshot.WaitingForSamples)(s)
			s.NewestSample = time.Time{}
		}, false, map[string]string{"Ready": "False WaitingForSamples", "SamplesFresh": "False WaitingForSamples",
			"TargetFound": "True ScaleRead"}},
		{"no pod can be read", problem{}, func(s *snapshot.Snapshot) {
			unavailable(snapshot.SourceFailing)(s)
			s.NewestSample = time.Time{}
		}, false, map[string]string{"Ready": "False SourceFailing", "SamplesFresh": "False SourceFailing",
			"TargetFound": "True ScaleRead"}},
		{"no pod can be read any more", problem{}, unavailable(snapshot.SourceFailing), false,
			map[string]string{"Ready": "False SourceFailing", "SamplesFresh": "True SamplesArriving",
				"TargetFound": "True ScaleRead"}},
		{"stale", problem{}, func(s *snapshot.Snapshot) {
			unavailable(snapshot.Stale)(s)
			s.NewestSample = now.Add(-31 * time.Second)
		}, false, map[string]string{"Ready": "False Stale", "SamplesFresh": "False Stale",
			"TargetFound": "True ScaleRead"}},
		{"one pod silent", problem{}, func(s *snapshot.Snapshot) {
			s.Failing = failing
		}, false, map[string]string{"HorizonSufficient": "True CoversStartup", "Ready": "True ForecastServed",
			"SamplesFresh": "True SomePodsUnreadable", "TargetFound": "True ScaleRead"}},
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
	assert.Equal(t, "samples arrive, but not from every pod; pod a: refused; pod b: refused; pod c: refused; and 2 more",
		fresh.Message)

	s.Err, s.NewestSample = &snapshot.Unavailable{Reason: snapshot.SourceFailing,
		Message: "none of 5 ready pods can be read: refused"}, time.Time{}
	status = statusOf(&v1alpha1.PredictedMetric{}, problem{}, s, true, now)
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSamplesFresh} {
		assert.Equal(t, "none of 5 ready pods can be read: refused",
			meta.FindStatusCondition(status.Conditions, kind).Message, "once")
	}
}

// A forecast that fails takes its numbers with it, but not the decision that was made last.
func TestNumbersOfAFailedForecastAreAbsent(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Status = statusOf(pm, problem{}, healthy(), true, now)
	s := healthy()
	s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "why"}
	status := statusOf(pm, problem{}, s, true, now.Add(time.Minute))
	assert.Nil(t, status.Predicted)
	assert.Nil(t, status.DesiredReplicas)
	assert.Equal(t, pm.Status.LastDecision, status.LastDecision)
}

func TestLastDecisionStaysWhileItIsTheSame(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Status = statusOf(pm, problem{}, healthy(), true, now)
	s := healthy()
	s.Forecast.LoadPredicted = 0.9
	status := statusOf(pm, problem{}, s, true, now.Add(time.Second))
	assert.Equal(t, pm.Status.LastDecision, status.LastDecision)
	assert.False(t, urgent(&pm.Status, &status), "numbers alone are not urgent")
	s.Decision.Desired = 7
	status = statusOf(pm, problem{}, s, true, now.Add(2*time.Second))
	assert.Equal(t, int32(7), status.LastDecision.Desired)
	assert.True(t, urgent(&pm.Status, &status))
}

func TestQuantityKeepsThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.12345: "123m", 1.23456: "1230m", 123.456: "123", 1234.5: "1230", -2.5: "-2500m", 0.0004: "0",
		1e9: "1G",
	} {
		assert.Equal(t, want, quantity(v).String(), "%v", v)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e30} {
		assert.Nil(t, quantity(v), "%v", v)
	}
}

func TestHorizonSufficient(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	pm.Spec.Horizon.ReactionDelay = &metav1.Duration{Duration: 15 * time.Second}
	of := func(f pipeline.Forecast, err error) *metav1.Condition {
		s := healthy()
		s.Forecast, s.Err = f, err
		pm.Status = statusOf(pm, problem{}, s, true, now)
		return meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionHorizonSufficient)
	}
	lost := &snapshot.Unavailable{Reason: snapshot.Stale, Message: "old"}
	assert.Nil(t, of(pipeline.Forecast{}, lost), "nothing is known before the first forecast")
	c := of(pipeline.Forecast{Horizon: 45 * time.Second, HorizonNeeded: 45 * time.Second}, nil)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Equal(t, "CoversStartup", c.Reason)

	c = of(pipeline.Forecast{Horizon: 55 * time.Second, HorizonNeeded: 230500 * time.Millisecond,
		HorizonLimit: pipeline.LimitedByMax}, nil)
	assert.Equal(t, metav1.ConditionFalse, c.Status)
	assert.Equal(t, "LimitedByMax", c.Reason)
	assert.Equal(t, "the forecast looks 55s ahead, pods need 3m51s until they take load: set horizon.max to 3m36s or more",
		c.Message)

	c = of(pipeline.Forecast{
		Horizon: 195 * time.Second, HorizonNeeded: 195 * time.Second, HorizonLimit: pipeline.LimitedByWindow,
		Window: 90 * time.Second, WindowNeeded: 156 * time.Second,
	}, nil)
	assert.Equal(t, "LimitedByWindow", c.Reason)
	assert.Equal(
		t, "the window of 1m30s is too short for a horizon of 3m15s, which needs 2m36s: leave holt out, whose window does not grow", c.Message)
	assert.Equal(t, "LimitedByWindow", of(pipeline.Forecast{}, lost).Reason, "stays while there is no forecast")
}

func TestForecastSkillful(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	of := func(a snapshot.Accuracy) string {
		s := healthy()
		s.Accuracy = a
		pm.Status = statusOf(pm, problem{}, s, true, now)
		return conditionsOf(pm.Status)["ForecastSkillful"]
	}
	day := func(judged time.Duration, off float64) snapshot.Accuracy {
		return snapshot.Accuracy{LastDay: pipeline.Score{Judged: judged, Error: off, Naive: 2}}
	}
	assert.Empty(t, of(snapshot.Accuracy{}), "nothing is known yet")
	assert.Empty(t, of(day(10*time.Minute, 9)), "that may be chance")
	assert.Empty(t, of(snapshot.Accuracy{LastDay: pipeline.Score{Judged: time.Hour}}),
		"on a load that never changes the present is exact")
	assert.Equal(t, "True BetterThanPresent", of(day(time.Hour, 2.1)))
	assert.Equal(t, "False WorseThanPresent", of(day(time.Hour, 2.3)))
}

func TestSamplesSufficient(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	of := func(every, late, horizon time.Duration) string {
		s := healthy()
		s.SampleInterval, s.SampleDelay, s.Forecast.Horizon = every, late, horizon
		pm.Status = statusOf(pm, problem{}, s, true, now)
		return conditionsOf(pm.Status)["SamplesSufficient"]
	}
	assert.Empty(t, of(0, 0, 45*time.Second), "nothing is known yet")
	assert.Equal(t, "True SamplesDenseEnough", of(time.Second, time.Second, 45*time.Second))
	assert.Equal(t, "True SamplesDenseEnough", of(5*time.Second, 6*time.Second, 45*time.Second))
	assert.Equal(t, "False SamplesTooSparse", of(15*time.Second, 8*time.Second, 45*time.Second))
	assert.Equal(t, "True SamplesDenseEnough",
		of(15*time.Second, 8*time.Second, 90*time.Second), "a longer horizon bears it")
	assert.Equal(t, "False SamplesTooSparse", of(15*time.Second, 8*time.Second, 45*time.Second))
	assert.Equal(t, "False SamplesTooSparse", of(15*time.Second, 8*time.Second, 0), "stays while there is no forecast")
	for _, c := range pm.Status.Conditions {
		if c.Type == "SamplesSufficient" {
			assert.Contains(t, c.Message, "samples are 15s apart and arrive 8s late: a change shows after 38s")
		}
	}
}

func TestStatusNamesTheDrivingMetric(t *testing.T) {
	h := healthy()
	h.Combined = snapshot.Combined{Desired: 9, DrivenBy: "heap", Metrics: 2}
	s := statusOf(&v1alpha1.PredictedMetric{}, problem{}, h, true, now)
	assert.Equal(t, int32(6), *s.DesiredReplicas)
	assert.Equal(t, int32(9), *s.TargetDesiredReplicas)
	assert.Equal(t, "heap", s.DrivenBy)
}

func TestConditionsNameTheSourceError(t *testing.T) {
	h := healthy()
	h.SourceErr = errors.New("connection refused")
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

// While changes of the pods are not seen, status says what the forecast is held to, and then that there is none.
func TestStatusOfPodsThatAreNotSeen(t *testing.T) {
	pm := &v1alpha1.PredictedMetric{}
	h := healthy()
	h.PodsLost = h.At.Add(-10 * time.Second)
	s := statusOf(pm, problem{}, h, true, h.At)
	assert.Equal(t, "True PodsStale", conditionsOf(s)["Ready"])
	assert.Nil(t, s.Served.Load, "it is divided by the pods")
	assert.NotNil(t, s.Served.LoadTotal)
	h.Err = &snapshot.Unavailable{Reason: snapshot.PodsStale, Message: "changes of the pods have not been seen"}
	s = statusOf(pm, problem{}, h, true, h.At)
	assert.Equal(t, "False PodsStale", conditionsOf(s)["Ready"])
}

func TestStatusInDryRun(t *testing.T) {
	h := healthy()
	h.Combined = snapshot.Combined{Desired: 9, DrivenBy: "heap", Metrics: 1}
	assert.NotNil(t, statusOf(&v1alpha1.PredictedMetric{}, problem{}, withPublished(h), true, now).Served)

	h.DryRun = true
	s := statusOf(&v1alpha1.PredictedMetric{}, problem{}, withPublished(h), true, now)
	assert.Equal(t, "True DryRun", conditionsOf(s)["Ready"])
	assert.Equal(t, int32(6), *s.DesiredReplicas)
	assert.Equal(t, "ScaleUp", s.LastDecision.Action)
	assert.Nil(t, s.Served, "no HPA reads anything")
	assert.Equal(t, int32(9), *s.TargetDesiredReplicas, "of the others of the target")

	h.Combined = snapshot.Combined{}
	s = statusOf(&v1alpha1.PredictedMetric{}, problem{}, withPublished(h), true, now)
	assert.Nil(t, s.TargetDesiredReplicas, "there are no others")
	assert.Empty(t, s.DrivenBy)

	h.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "old"}
	assert.Equal(t, "False Stale",
		conditionsOf(statusOf(&v1alpha1.PredictedMetric{}, problem{}, withPublished(h), true, now))["Ready"])
}

// withPublished returns a snapshot that was published now.
func withPublished(s snapshot.Snapshot) snapshot.Snapshot {
	s.At = now
	return s
}
