package externalmetrics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/foresail/foresail/adapter/snapshot"
)

// Results that requests are counted under, beside the snapshot.Reasons.
const (
	resultOK            = "OK"
	resultUnknownMetric = "UnknownMetric"
	resultNotFound      = "NotFound"
	resultAmbiguous     = "Ambiguous"
	resultNoForecast    = "NoForecast" // for a reason that is not a snapshot.Reason
	resultUndecided     = "ScaleUnreadable"
	resultUnservable    = "Unservable" // the forecast is no value that a Quantity of milli-units can hold
)

func results() []string {
	return []string{
		resultOK, resultUnknownMetric, resultNotFound, resultAmbiguous, resultNoForecast, resultUnservable, resultUndecided,
		string(snapshot.NoReadyPods), string(snapshot.WaitingForSamples), string(snapshot.WarmingUp),
		string(snapshot.PodsUnreadable), string(snapshot.Stale), string(snapshot.BadSamples), string(snapshot.InvalidSpec),
	}
}

// refusal is an answer without a value. It is the status that the client gets.
type refusal struct {
	result  string
	code    int32
	reason  metav1.StatusReason
	message string
	name    string // of the PredictedMetric, if it is about one
}

func (r *refusal) Error() string { return r.message }

// Status has no RetryAfterSeconds, for which the HPA's client would sleep instead of failing.
func (r *refusal) Status() metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: r.code, Reason: r.reason, Message: r.message}
	if r.name != "" {
		status.Details = &metav1.StatusDetails{Group: "foresail.dev", Kind: "predictedmetrics", Name: r.name}
	}
	return status
}

// among says what a refusal for one PredictedMetric means where a sum was asked for.
func (r *refusal) among(q request, count int) *refusal {
	if count == 1 {
		return r
	}
	summed := *r
	summed.message = fmt.Sprintf("%s matches %d PredictedMetrics, and their sum without one of them would be too low: %s", q.describe(), count, r.message)
	return &summed
}

// describe names the selector and where it looked.
func (q request) describe() string {
	if q.selector.Empty() {
		return fmt.Sprintf("the empty selector in namespace %q", q.namespace)
	}
	return fmt.Sprintf("the selector %q in namespace %q", q.selector, q.namespace)
}

func unknownMetric(name string, metrics []metric) *refusal {
	names := make([]string, 0, len(metrics))
	for _, m := range metrics {
		names = append(names, m.name)
	}
	return &refusal{
		result: resultUnknownMetric, code: http.StatusNotFound, reason: metav1.StatusReasonNotFound,
		message: fmt.Sprintf("there is no external metric %q; there are %s", name, strings.Join(names, ", ")),
	}
}

func notFound(q request, present []snapshot.Snapshot) *refusal {
	there := "there is none in the namespace"
	if len(present) > 0 {
		there = fmt.Sprintf("there is %s; the labels to select by are %s, %s and %s", names(present), LabelMetric, LabelKind, LabelTarget)
	}
	return &refusal{
		result: resultNotFound, code: http.StatusNotFound, reason: metav1.StatusReasonNotFound,
		message: fmt.Sprintf("%s matches no PredictedMetric: %s", q.describe(), there),
	}
}

func ambiguous(q request, found []snapshot.Snapshot) *refusal {
	return &refusal{
		result: resultAmbiguous, code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
		message: fmt.Sprintf("%s matches %d PredictedMetrics (%s), and a sum of their %s means nothing: select one with %s=NAME",
			q.describe(), len(found), names(found), q.metric, LabelMetric),
	}
}

// maxNames bounds how many names a message lists.
const maxNames = 5

func names(snapshots []snapshot.Snapshot) string {
	listed := make([]string, 0, maxNames+1)
	for _, s := range snapshots[:min(len(snapshots), maxNames)] {
		listed = append(listed, s.Metric.Name)
	}
	if more := len(snapshots) - maxNames; more > 0 {
		listed = append(listed, fmt.Sprintf("%d more", more))
	}
	return strings.Join(listed, ", ")
}

// unfit says why a snapshot must not be served at all, nil if it may be.
func unfit(s *snapshot.Snapshot, now time.Time) *refusal {
	var unavailable *snapshot.Unavailable
	switch {
	case errors.As(s.Err, &unavailable) && unavailable.Reason == snapshot.Stale && !s.NewestSample.IsZero():
		return stale(s, "newest sample", s.NewestSample, now)
	case errors.As(s.Err, &unavailable):
		return noForecast(s, string(unavailable.Reason), unavailable.Message)
	case s.Err != nil:
		return noForecast(s, resultNoForecast, s.Err.Error())
	case s.NewestSample.IsZero():
		return noForecast(s, string(snapshot.WaitingForSamples), "no sample has been read yet")
	case now.Sub(s.At) > s.StaleAfter:
		return stale(s, "newest forecast", s.At, now)
	case now.Sub(s.NewestSample) > s.StaleAfter:
		return stale(s, "newest sample", s.NewestSample, now)
	default:
		return nil
	}
}

func stale(s *snapshot.Snapshot, what string, at, now time.Time) *refusal {
	return unready(s, string(snapshot.Stale), fmt.Sprintf("the %s is over %s old (%s), staleAfter is %s",
		what, roughly(now.Sub(at)), at.UTC().Format(time.RFC3339), s.StaleAfter))
}

func noForecast(s *snapshot.Snapshot, result, why string) *refusal {
	return unready(s, result, "there is no forecast: "+why)
}

func noReadyPods(s *snapshot.Snapshot) *refusal {
	return unready(s, string(snapshot.NoReadyPods), fmt.Sprintf("%s %s has no ready pod to divide the load by; %s with a target of type AverageValue needs none",
		s.TargetKind, s.TargetName, LoadTotal))
}

func undecided(s *snapshot.Snapshot) *refusal {
	return unready(s, resultUndecided, fmt.Sprintf("the scale of %s %s cannot be read since %s, so nobody knows from which count to go; %s needs none",
		s.TargetKind, s.TargetName, s.ReplicasLost.UTC().Format(time.RFC3339), LoadTotal))
}

// unready is the refusal of a PredictedMetric that has no value at the moment.
func unready(s *snapshot.Snapshot, result, why string) *refusal {
	return &refusal{
		result: result, code: http.StatusServiceUnavailable, reason: metav1.StatusReasonServiceUnavailable, name: s.Metric.Name,
		message: fmt.Sprintf("PredictedMetric %s: %s (kubectl describe predictedmetric -n %s %s tells more)", s.Metric, why, s.Metric.Namespace, s.Metric.Name),
	}
}

func unservable(s *snapshot.Snapshot, metric string, err error) *refusal {
	return &refusal{
		result: resultUnservable, code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError, name: s.Metric.Name,
		message: fmt.Sprintf("PredictedMetric %s: %s cannot be told in milli-units: %v; scale the metric", s.Metric, metric, err),
	}
}

// roughly rounds an age down to a step of a coarse scale: an age that changes with each read would rewrite the status
// and the events of the HPA each time.
func roughly(age time.Duration) string {
	rounded := time.Duration(0)
	for _, step := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if step <= age {
			rounded = step
		}
	}
	return duration.HumanDuration(rounded)
}
