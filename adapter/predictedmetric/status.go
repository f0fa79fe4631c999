package predictedmetric

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// Reasons of conditions beside those of package snapshot.
const (
	reasonServed  = "ForecastServed"
	reasonFresh   = "SamplesArrive"
	reasonTrouble = "SourceFailing"
	reasonFine    = "FineEnough"
	reasonCoarse  = "TooCoarse"
	reasonFound   = "ScaleRead"
	reasonNoScale = "ScaleUnreadable"
	reasonPending = "Pending"
)

// statusOf returns the status that pm should have, given what is known of it. The previous status matters only for
// when a condition last changed and for the decision before this one.
func statusOf(pm *v1alpha1.PredictedMetric, p problem, s snapshot.Snapshot, known bool, now time.Time) v1alpha1.PredictedMetricStatus {
	status := v1alpha1.PredictedMetricStatus{
		ObservedGeneration: pm.Generation,
		Conditions:         append([]metav1.Condition(nil), pm.Status.Conditions...),
		LastDecision:       pm.Status.LastDecision,
	}
	conditions := []metav1.Condition{targetFound(p, known), samplesFresh(p, s, known, now), ready(p, s, known)}
	if shows, within := s.Coarseness(); known && within > 0 {
		conditions = append(conditions, samplesFine(&s, shows, within))
	}
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = pm.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if !known || p.ofSpec() {
		return status
	}
	status.ReadyReplicas = new(int32(s.Ready))
	status.InitTimeout = seconds(s.InitTimeout)
	status.Source, status.SamplesPerSecond = s.Source, quantity(s.SamplesPerSecond)
	if s.SampleInterval > 0 {
		status.SampleInterval = seconds(s.SampleInterval)
	}
	if !s.NewestSample.IsZero() {
		status.SampleAge = seconds(max(0, now.Sub(s.NewestSample)))
	}
	if s.Err == nil {
		addForecast(&status, s, now)
	}
	return status
}

func addForecast(status *v1alpha1.PredictedMetricStatus, s snapshot.Snapshot, now time.Time) {
	f := s.Forecast
	status.Current, status.Predicted = quantity(f.LoadNow), quantity(f.LoadPredicted)
	status.Level, status.Trend = quantity(f.Level), quantity(f.Trend)
	status.Replicas, status.WantedReplicas = new(int32(f.Target)), new(int32(s.Decision.Wanted))
	status.Instances = new(int32(f.Active))
	status.TargetWantedReplicas, status.DrivenBy = new(int32(s.Joint.Wanted)), s.Joint.DrivenBy
	status.Horizon = seconds(f.Horizon)
	last, d := status.LastDecision, s.Decision
	if last == nil || last.Wanted != int32(d.Wanted) || last.Action != string(d.Action) {
		status.LastDecision = &v1alpha1.LastDecision{
			Time: metav1.NewTime(now), Direction: string(d.Direction), Action: string(d.Action),
			Wanted: int32(d.Wanted), Reason: string(d.Reason), Message: s.Explain(),
		}
	}
}

func condition(kind string, ok bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func unknown(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reasonPending, Message: "the PredictedMetric has not been looked at yet"}
}

func targetFound(p problem, known bool) metav1.Condition {
	kind := v1alpha1.ConditionTargetFound
	switch {
	case p.ofTarget():
		return condition(kind, false, reasonNoScale, p.err.Error())
	case p.ofSpec() || !known:
		return unknown(kind)
	}
	return condition(kind, true, reasonFound, "the scale subresource can be read")
}

func samplesFresh(p problem, s snapshot.Snapshot, known bool, now time.Time) metav1.Condition {
	kind := v1alpha1.ConditionSamplesFresh
	switch {
	case !known || p.ofSpec():
		return unknown(kind)
	case s.NewestSample.IsZero():
		return condition(kind, false, string(snapshot.WaitingForSamples), withFailures("no sample has been read yet", &s))
	case now.Sub(s.NewestSample) > s.StaleAfter:
		message := fmt.Sprintf("the newest sample is %s old (limit %s)", now.Sub(s.NewestSample).Round(time.Second), s.StaleAfter)
		return condition(kind, false, string(snapshot.Stale), withFailures(message, &s))
	case s.Trouble != nil:
		return condition(kind, true, reasonTrouble, withFailures("samples are still fresh, but their source fails", &s))
	case len(s.Failing) > 0:
		return condition(kind, true, "SomePodsUnreadable", withFailures("samples arrive, but not from every pod", &s))
	}
	return condition(kind, true, reasonFresh, "samples arrive from every pod")
}

// samplesFine tells whether changes of the load show in the samples early enough for the horizon. While that is not
// known the condition stays as it was, so that an alert does not end because samples have stopped coming.
func samplesFine(s *snapshot.Snapshot, shows, within time.Duration) metav1.Condition {
	kind := v1alpha1.ConditionSamplesFine
	// In whole seconds, so that the message does not change with each status.
	facts := fmt.Sprintf("samples are %s apart and come %s late", s.SampleInterval.Round(time.Second), s.SampleDelay.Round(time.Second))
	if shows <= within {
		return condition(kind, true, reasonFine, facts)
	}
	return condition(kind, false, reasonCoarse, fmt.Sprintf("%s: a change shows after %s (two samples and their delay), of a horizon of %s more than half; "+
		"samples must be taken more often, or come sooner", facts, shows.Round(time.Second), (2*within).Round(time.Second)))
}

func ready(p problem, s snapshot.Snapshot, known bool) metav1.Condition {
	kind := v1alpha1.ConditionReady
	var unavailable *snapshot.Unavailable
	switch {
	case p.ofSpec():
		return condition(kind, false, string(snapshot.InvalidSpec), p.err.Error())
	case !known:
		return unknown(kind)
	case s.Err != nil && p.ofTarget():
		return condition(kind, false, reasonNoScale, p.err.Error())
	case errors.As(s.Err, &unavailable):
		return condition(kind, false, string(unavailable.Reason), withFailures(unavailable.Message, &s))
	}
	return condition(kind, true, reasonServed, "a forecast is served")
}

// shownFailures is how many pods a condition names.
const shownFailures = 3

// withFailures adds what is wrong with the source and with the pods that cannot be read. Errors name addresses, which
// differ from pod to pod; the age of a failure is left out, for it would change the condition each time.
func withFailures(message string, s *snapshot.Snapshot) string {
	parts := []string{message}
	if s.Trouble != nil {
		parts = append(parts, s.Trouble.Error())
	}
	for i, f := range s.Failing {
		if i == shownFailures {
			parts = append(parts, fmt.Sprintf("and %d more", len(s.Failing)-shownFailures))
			break
		}
		parts = append(parts, fmt.Sprintf("pod %s: %v", f.Pod, f.Err))
	}
	return strings.Join(parts, "; ")
}

// quantity returns v with three significant digits, so that a status does not change with every digit; nil if v is
// no number.
func quantity(v float64) *resource.Quantity {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	milli := v * 1000
	if milli != 0 {
		unit := math.Pow(10, math.Floor(math.Log10(math.Abs(milli)))-2)
		milli = math.Round(milli/max(1, unit)) * max(1, unit)
	}
	if math.Abs(milli) > math.MaxInt64/2 {
		return nil
	}
	return resource.NewMilliQuantity(int64(math.Round(milli)), resource.DecimalSI)
}

// seconds returns d in tenths of a second.
func seconds(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d.Round(100 * time.Millisecond)}
}

// decided tells whether a decision asks for another count than the one before.
func decided(before, after *v1alpha1.LastDecision) bool {
	if after == nil || after.Action == string(pipeline.Hold) {
		return false
	}
	return before == nil || before.Wanted != after.Wanted || before.Action != after.Action
}
