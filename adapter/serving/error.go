package serving

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// Class is the kind of an Error, which a door translates into a status of its protocol.
type Class string

// The classes of errors.
const (
	NotFound    Class = "NotFound"    // there is no such metric or PredictedMetric
	Invalid     Class = "Invalid"     // the query makes no sense, and will not later
	Unavailable Class = "Unavailable" // there is no value at the moment
	Internal    Class = "Internal"    // the value cannot be expressed
)

// Reasons of errors in addition to the snapshot.Reasons.
const (
	ReasonUnknownMetric   = "UnknownMetric"
	ReasonNotFound        = "NotFound"
	ReasonAmbiguous       = "Ambiguous"
	ReasonNoForecast      = "NoForecast"      // for a cause that has no snapshot.Reason
	ReasonScaleUnreadable = "ScaleUnreadable" // the replicas of the target are not known
	ReasonOutOfRange      = "OutOfRange"      // the value does not fit into milli-units
	ReasonDryRun          = "DryRun"          // there may be a value, but it must not be acted on
)

// Reasons returns every reason that an Error may have, in an order that stays the same.
func Reasons() []string {
	reasons := []string{
		ReasonUnknownMetric, ReasonNotFound, ReasonAmbiguous, ReasonNoForecast, ReasonOutOfRange,
		ReasonScaleUnreadable, ReasonDryRun,
	}
	for _, r := range snapshot.Reasons() {
		reasons = append(reasons, string(r))
	}
	return reasons
}

// Error is the answer to a query without a value.
type Error struct {
	Class   Class
	Reason  string // one word, of Reasons
	Name    string // the PredictedMetric, empty unless the error is about one
	Message string // a sentence for the user, the same for as long as the cause is
}

func (e *Error) Error() string { return e.Message }

// AsError returns the *Error that an error is. Any other is an internal one.
func AsError(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return &Error{Class: Internal, Reason: ReasonNoForecast, Message: err.Error()}
}

// Check returns why a snapshot has no forecast to serve now, as an *Error, or nil if it has one. In
// dry run a forecast is shown, and not served: Read sees to that.
func Check(s *snapshot.Snapshot, now time.Time) error {
	var why *snapshot.Unavailable
	switch {
	case s.Usable(now):
		return nil
	case errors.As(s.Err, &why) && why.Reason == snapshot.Stale && !s.NewestSample.IsZero():
		return stale(s, "newest sample", s.NewestSample, now)
	case errors.As(s.Err, &why):
		return unavailable(s, string(why.Reason), "there is no forecast: "+why.Message)
	case s.Err != nil:
		return unavailable(s, ReasonNoForecast, "there is no forecast: "+s.Err.Error())
	case s.NewestSample.IsZero():
		return unavailable(s, string(snapshot.WaitingForSamples), "there is no forecast: no sample has been read yet")
	case s.ForecastTooOld(now):
		return stale(s, "newest forecast", s.At, now)
	default:
		return stale(s, "newest sample", s.NewestSample, now)
	}
}

func stale(s *snapshot.Snapshot, what string, at, now time.Time) error {
	return unavailable(s, string(snapshot.Stale), fmt.Sprintf("the %s is over %s old (%s), staleAfter is %s",
		what, coarse(now.Sub(at)), at.UTC().Format(time.RFC3339), s.StaleAfter))
}

// notJoined is the error of a decision that has not been joined with those of the target yet, which
// takes less than a second.
func notJoined(s *snapshot.Snapshot) error {
	return unavailable(s, ReasonNoForecast, "the number of replicas is not decided yet")
}

func dryRun(s *snapshot.Snapshot) error {
	return unavailable(s, ReasonDryRun,
		"spec.dryRun is true, so no value is served; set it to false to have its forecast acted on")
}

func noReadyPods(s *snapshot.Snapshot) error {
	return unavailable(s, string(snapshot.NoReadyPods),
		fmt.Sprintf("%s %s has no ready pod to divide the load by; %s with a target of type AverageValue needs none",
			s.TargetKind, s.TargetName, LoadTotal))
}

func podsLost(s *snapshot.Snapshot) error {
	return unavailable(s, string(snapshot.PodsStale), fmt.Sprintf(
		"changes of the pods of %s %s have not been seen since %s, so the load cannot be divided by them; %s does not need them",
		s.TargetKind, s.TargetName, s.PodsLost.UTC().Format(time.RFC3339), LoadTotal))
}

func noReplicas(s *snapshot.Snapshot) error {
	return unavailable(s, ReasonScaleUnreadable,
		fmt.Sprintf("the scale of %s %s has been unreadable since %s, so no number of replicas can be decided; %s does not need it",
			s.TargetKind, s.TargetName, s.ReplicasLost.UTC().Format(time.RFC3339), LoadTotal))
}

// unavailable is the error of a PredictedMetric that has no value at the moment.
func unavailable(s *snapshot.Snapshot, reason, why string) error {
	return &Error{
		Class: Unavailable, Reason: reason, Name: s.Metric.Name,
		Message: fmt.Sprintf("PredictedMetric %s: %s (details: kubectl describe predictedmetric -n %s %s)", s.Metric,
			why,
			s.Metric.Namespace, s.Metric.Name),
	}
}

func outOfRange(s *snapshot.Snapshot, metric string, err error) error {
	return &Error{
		Class: Internal, Reason: ReasonOutOfRange, Name: s.Metric.Name,
		Message: fmt.Sprintf("PredictedMetric %s: %s cannot be expressed in milli-units: %v; scale the metric",
			s.Metric,
			metric, err),
	}
}

// noTarget is the error of a PredictedMetric whose threshold is not known: its spec was rejected,
// or not read yet.
func noTarget(s *snapshot.Snapshot, metric string, err error) error {
	if why, ok := errors.AsType[*snapshot.Unavailable](s.Err); ok {
		return unavailable(s, string(why.Reason), "there is no target: "+why.Message)
	}
	return outOfRange(s, metric, err)
}

// describe names the selector and the namespace.
func (q *Query) describe() string {
	if q.Selector.Empty() {
		return fmt.Sprintf("the empty selector in namespace %q", q.Namespace)
	}
	return fmt.Sprintf("the selector %q in namespace %q", q.Selector, q.Namespace)
}

// CheckMetric returns an *Error about a metric that does not exist, nil for one of Metrics.
func CheckMetric(name string) error {
	if slices.Contains(Metrics(), name) {
		return nil
	}
	return unknownMetric(name)
}

func unknownMetric(name string) error {
	return &Error{
		Class: NotFound, Reason: ReasonUnknownMetric,
		Message: fmt.Sprintf("there is no metric %q: must be one of %s", name, strings.Join(Metrics(), ", ")),
	}
}

func notFound(q Query, present []snapshot.Snapshot) error {
	has := "the namespace has none"
	if len(present) > 0 {
		has = fmt.Sprintf("the namespace has %s; the labels to select by are %s, %s and %s", names(present),
			LabelMetric, LabelKind, LabelTarget)
	}
	return &Error{
		Class: NotFound, Reason: ReasonNotFound,
		Message: fmt.Sprintf("%s matches no PredictedMetric: %s", q.describe(), has),
	}
}

func ambiguous(q Query, found []snapshot.Snapshot) error {
	return &Error{
		Class: Invalid, Reason: ReasonAmbiguous,
		Message: fmt.Sprintf("%s matches %d PredictedMetrics (%s), and an HPA would add their values up: select one with %s=NAME",
			q.describe(), len(found), names(found), LabelMetric),
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

// coarse rounds an age down to a coarse step. An age that changed with each read would rewrite the
// status and the events of the HPA each time.
func coarse(age time.Duration) string {
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
