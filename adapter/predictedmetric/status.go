package predictedmetric

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// Reasons of conditions in addition to those of package snapshot.
const (
	reasonServed      = "ForecastServed"
	reasonArriving    = "SamplesArriving"
	reasonSourceFails = string(snapshot.SourceFailing)
	reasonSomePods    = "SomePodsUnreadable"
	reasonDense       = "SamplesDenseEnough"
	reasonSparse      = "SamplesTooSparse"
	reasonHorizon     = "CoversStartup"
	reasonSkill       = "BetterThanPresent"
	reasonWorse       = "WorseThanPresent"
	reasonFound       = "ScaleRead"
	reasonNoScale     = "ScaleUnreadable"
	reasonPending     = "Pending"
	reasonDryRun      = serving.ReasonDryRun
)

// statusOf returns the status of pm at now, of the generation that has been processed. Of the
// previous status it keeps the times at which conditions changed, and the decisions.
func statusOf(pm *v1alpha1.PredictedMetric, p problem, s snapshot.Snapshot, known bool,
	now time.Time) v1alpha1.PredictedMetricStatus {
	generation := cmp.Or(p.generation, pm.Status.ObservedGeneration)
	status := v1alpha1.PredictedMetricStatus{
		ObservedGeneration: generation,
		Conditions:         append([]metav1.Condition(nil), pm.Status.Conditions...),
		LastDecision:       pm.Status.LastDecision,
		PreviousDecisions:  pm.Status.PreviousDecisions,
	}
	conditions := []metav1.Condition{targetFound(p, known), samplesFresh(p, s, known, now), ready(p, s, known)}
	if resolution, limit := s.SampleResolution(); known && limit > 0 {
		conditions = append(conditions, samplesSufficient(&s, resolution, limit))
	}
	if known && s.Err == nil {
		conditions = append(conditions, horizonSufficient(&s.Forecast, pm.Spec.Horizon.ReactionDelay))
		conditions = append(conditions, forecastSkillful(&s.Accuracy)...)
	}
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if !known || p.ofSpec() {
		return status
	}
	status.ReadyReplicas = new(int32(s.Ready))
	status.StartupTime, status.StartupsMeasured = seconds(s.StartupTime), new(int32(s.StartupsMeasured))
	status.UnreadablePods = new(int32(len(s.Failing)))
	status.Source, status.SamplesPerSecond = s.Source, quantity(s.SamplesPerSecond)
	if s.SampleInterval > 0 {
		status.SampleInterval = seconds(s.SampleInterval)
	}
	if !s.NewestSample.IsZero() {
		status.SampleAge = seconds(max(0, now.Sub(s.NewestSample)))
	}
	if s.Bounds != nil {
		addBounds(&status, &s)
	}
	if s.Err == nil {
		addForecast(&status, s, now)
	}
	return status
}

// addBounds adds the bounds that hold with schedules. They are known without a forecast.
func addBounds(status *v1alpha1.PredictedMetricStatus, s *snapshot.Snapshot) {
	status.ActiveSchedules, status.MinReplicas = s.ActiveSchedules, new(int32(s.Bounds.Min))
	if s.Bounds.Max < math.MaxInt32 {
		status.MaxReplicas = new(int32(s.Bounds.Max))
	}
}

func addForecast(status *v1alpha1.PredictedMetricStatus, s snapshot.Snapshot, now time.Time) {
	f := s.Forecast
	status.Current, status.Predicted = quantity(f.LoadNow), quantity(f.LoadPredicted)
	status.Level, status.Trend = quantity(f.Level), quantity(f.Trend)
	status.Replicas, status.DesiredReplicas = new(int32(f.Target)), new(int32(s.Decision.Desired))
	status.Instances = new(int32(f.Active))
	if s.Combined.Decided() {
		status.TargetDesiredReplicas, status.DrivenBy = new(int32(s.Combined.Desired)), s.Combined.DrivenBy
	}
	status.Horizon = seconds(f.Horizon)
	if s.Learned > 0 {
		status.Learned = &metav1.Duration{Duration: s.Learned.Truncate(time.Minute)}
	}
	if day := s.Accuracy.LastDay; day.LateKnown >= skillAfter {
		status.Late = strconv.FormatFloat(100*day.Late, 'f', 1, 64) + "%"
	}
	status.Served = served(&s, now)
	last, d := status.LastDecision, s.Decision
	if last == nil || last.Desired != int32(d.Desired) || last.Action != string(d.Action) {
		if last != nil {
			status.PreviousDecisions = append([]v1alpha1.LastDecision{*last},
				status.PreviousDecisions[:min(len(status.PreviousDecisions), maxPrevious-1)]...)
		}
		status.LastDecision = &v1alpha1.LastDecision{
			Time: metav1.NewTime(now), Direction: string(d.Direction), Action: string(d.Action),
			Desired: int32(d.Desired), Reason: string(d.Reason), Message: s.Explain(),
		}
	}
}

// maxPrevious is how many decisions before the last one a status has at most.
const maxPrevious = 10

// served returns the values that doors serve now, nil if there are none.
func served(s *snapshot.Snapshot, now time.Time) *v1alpha1.ServedMetrics {
	if s.DryRun || serving.Check(s, now) != nil {
		return nil
	}
	value := func(metric string) *resource.Quantity {
		milli, err := serving.Value(metric, s)
		if err != nil {
			return nil
		}
		return resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	return &v1alpha1.ServedMetrics{LoadTotal: value(serving.LoadTotal), Load: value(serving.Load),
		Replicas: value(serving.Replicas)}
}

func condition(kind string, ok bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// unknownCondition returns a condition of a type whose status is not known yet.
func unknownCondition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reasonPending,
		Message: "the PredictedMetric has not been processed yet"}
}

func targetFound(p problem, known bool) metav1.Condition {
	kind := v1alpha1.ConditionTargetFound
	switch {
	case p.ofTarget():
		return condition(kind, false, reasonNoScale, p.err.Error())
	case p.ofSpec() || !known:
		return unknownCondition(kind)
	}
	return condition(kind, true, reasonFound, "the scale subresource can be read")
}

func samplesFresh(p problem, s snapshot.Snapshot, known bool, now time.Time) metav1.Condition {
	kind := v1alpha1.ConditionSamplesFresh
	var unavailable *snapshot.Unavailable
	switch {
	case !known || p.ofSpec():
		return unknownCondition(kind)
	case s.NewestSample.IsZero() && errors.As(s.Err, &unavailable) && unavailable.Reason == snapshot.SourceFailing:
		return condition(kind, false, reasonSourceFails, unavailable.Message)
	case s.NewestSample.IsZero():
		return condition(kind, false, string(snapshot.WaitingForSamples),
			withFailures("no sample has been read yet", &s))
	case s.SamplesTooOld(now):
		message := fmt.Sprintf("the newest sample is %s old (limit %s)",
			now.Sub(s.NewestSample).Round(time.Second), s.StaleAfter)
		return condition(kind, false, string(snapshot.Stale), withFailures(message, &s))
	case s.SourceErr != nil:
		return condition(kind, true, reasonSourceFails,
			withFailures("samples are still fresh, but their source fails", &s))
	case len(s.Failing) > 0:
		return condition(kind, true, reasonSomePods, withFailures("samples arrive, but not from every pod", &s))
	}
	if s.Whole {
		return condition(kind, true, reasonArriving, "samples of the target arrive")
	}
	return condition(kind, true, reasonArriving, "samples arrive from every pod")
}

// samplesSufficient reports whether changes of the load show in the samples early enough for the
// horizon. Without samples the condition stays as it was, so that an alert does not end because
// samples have stopped.
func samplesSufficient(s *snapshot.Snapshot, resolution, limit time.Duration) metav1.Condition {
	kind := v1alpha1.ConditionSamplesSufficient
	// In whole seconds, so that the message does not change with each status.
	facts := fmt.Sprintf("samples are %s apart and arrive %s late", s.SampleInterval.Round(time.Second),
		s.SampleDelay.Round(time.Second))
	if resolution <= limit {
		return condition(kind, true, reasonDense, facts)
	}
	return condition(kind, false, reasonSparse,
		fmt.Sprintf("%s: a change shows after %s (two samples and their delay), more than half of the horizon (%s); "+
			"take samples more often, or reduce their delay", facts, resolution.Round(time.Second),
			(2*limit).Round(time.Second)))
}

// horizonSufficient reports whether the forecast looks as far ahead as pods need to start, and from
// a long enough window. Without a forecast the condition stays as it was.
func horizonSufficient(f *pipeline.Forecast, reactionDelay *metav1.Duration) metav1.Condition {
	kind := v1alpha1.ConditionHorizonSufficient
	switch f.HorizonLimit {
	case pipeline.LimitedByMax:
		needed := f.HorizonNeeded // by the time until the HPA acts longer than startup time × multiplier
		if reactionDelay != nil {
			needed -= reactionDelay.Duration
		}
		return condition(kind, false, string(f.HorizonLimit),
			fmt.Sprintf("the forecast looks %s ahead, pods need %s until they take load: set horizon.max to %s or more",
				wholeSeconds(f.Horizon), wholeSeconds(f.HorizonNeeded), wholeSeconds(needed)))
	case pipeline.LimitedByWindow:
		return condition(kind, false, string(f.HorizonLimit),
			fmt.Sprintf("the window of %s is too short for a horizon of %s, which needs %s: leave holt out, whose window does not grow",
				wholeSeconds(f.Window), wholeSeconds(f.Horizon), wholeSeconds(f.WindowNeeded)))
	}
	return condition(kind, true, reasonHorizon, "the forecast looks as far ahead as pods need to start")
}

// skillAfter is how much must have been judged for the condition: less is chance.
const skillAfter = 20 * time.Minute

// forecastSkillful reports whether forecasts are better than the present load would have been, by
// the last day or what there is of it. The figures themselves are metrics: in a message they would
// change it each time.
func forecastSkillful(a *snapshot.Accuracy) []metav1.Condition {
	kind := v1alpha1.ConditionForecastSkillful
	switch ratio := a.LastDay.Ratio(); {
	case a.LastDay.Judged < skillAfter || math.IsNaN(ratio):
		return nil
	case ratio > 1.1:
		return []metav1.Condition{condition(kind, false, reasonWorse,
			"forecasts have been off by a tenth more than the present load would have been")}
	}
	return []metav1.Condition{condition(kind, true, reasonSkill,
		"forecasts are no worse than the present load would have been")}
}

// wholeSeconds rounds up, so that a limit that is set to it suffices.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func ready(p problem, s snapshot.Snapshot, known bool) metav1.Condition {
	kind := v1alpha1.ConditionReady
	var unavailable *snapshot.Unavailable
	switch {
	case p.ofSpec():
		return condition(kind, false, string(snapshot.InvalidSpec), p.err.Error())
	case !known:
		return unknownCondition(kind)
	case s.Err != nil && p.ofTarget():
		return condition(kind, false, reasonNoScale, p.err.Error())
	case errors.As(s.Err, &unavailable) && unavailable.Reason == snapshot.SourceFailing:
		return condition(kind, false, string(unavailable.Reason), unavailable.Message) // which has the errors
	case errors.As(s.Err, &unavailable):
		return condition(kind, false, string(unavailable.Reason), withFailures(unavailable.Message, &s))
	}
	if s.DryRun {
		return condition(kind, true, reasonDryRun, "there is a forecast, and nothing acts on it: spec.dryRun is true")
	}
	if !s.PodsLost.IsZero() {
		return condition(kind, true, string(snapshot.PodsStale), fmt.Sprintf(
			"the forecast is no less than before: changes of the pods have not been seen since %s",
			s.PodsLost.UTC().Format(time.RFC3339)))
	}
	return condition(kind, true, reasonServed, "a forecast is served")
}

// shownFailures is how many unreadable pods a condition names.
const shownFailures = 3

// withFailures adds the errors of the source and of the pods that cannot be read. The ages of
// failures are left out: they would change the condition each time.
func withFailures(message string, s *snapshot.Snapshot) string {
	parts := []string{message}
	if s.SourceErr != nil {
		parts = append(parts, s.SourceErr.Error())
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

// quantity returns v with three significant digits, so that noise does not change the status; nil if v is not finite or
// too large.
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

// decided returns whether a decision needs another number of replicas than the one before.
func decided(before, after *v1alpha1.LastDecision) bool {
	if after == nil || after.Action == string(pipeline.Hold) {
		return false
	}
	return before == nil || before.Desired != after.Desired || before.Action != after.Action
}
