// Package metricview reads the object of a PredictedMetric for the page of `foresail dashboard`:
// its metric, source and bounds, and the conditions that fail. It reads the cluster with the rights
// of the user.
package metricview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// View answers. It is safe for concurrent use.
type View struct {
	Objects client.Reader
	Failure error // why there is no cluster to read
}

// Fact is a line about something.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Answer is about one PredictedMetric. Problem says why it has nothing else.
type Answer struct {
	Problem string `json:"problem,omitempty"`
	Facts   []Fact `json:"facts"`
	// Min and Max are the bounds that hold now, with the active schedules. Max is nil without a maximum.
	Min *int32 `json:"min"`
	Max *int32 `json:"max"`
	// Failing are the conditions that are not True, except Ready, whose reason the decision has.
	Failing []Condition `json:"failing"`
}

// Condition is one of the status.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Look returns the metric, source and bounds of a PredictedMetric, and its conditions that are not True.
func (v *View) Look(ctx context.Context, metric types.NamespacedName) Answer {
	answer := Answer{Facts: []Fact{}, Failing: []Condition{}}
	if v.Failure != nil {
		answer.Problem = problem(v.Failure, metric)
		return answer
	}
	var pm v1alpha1.PredictedMetric
	if err := v.Objects.Get(ctx, metric, &pm); err != nil {
		answer.Problem = problem(err, metric)
		return answer
	}
	pm.Spec.Default() // it may come from elsewhere than an API server
	answer.Min, answer.Max = boundsOf(&pm)
	answer.Facts = factsOf(&pm, answer.Min, answer.Max)
	for _, c := range pm.Status.Conditions {
		if c.Status != metav1.ConditionTrue && c.Type != v1alpha1.ConditionReady {
			answer.Failing = append(answer.Failing, Condition{c.Type, string(c.Status), c.Reason, c.Message})
		}
	}
	return answer
}

// boundsOf returns the bounds that hold now. The status has those of schedules.
func boundsOf(pm *v1alpha1.PredictedMetric) (least, most *int32) {
	if pm.Status.MinReplicas != nil {
		return pm.Status.MinReplicas, cmp.Or(pm.Status.MaxReplicas, pm.Spec.MaxReplicas)
	}
	return pm.Spec.MinReplicas, pm.Spec.MaxReplicas
}

func factsOf(pm *v1alpha1.PredictedMetric, least, most *int32) []Fact {
	facts := append(sourceOf(&pm.Spec.Source), Fact{"Threshold", thresholdOf(&pm.Spec)},
		Fact{"Bounds", boundsText(pm, least, most)})
	if a := pm.Status.Autoscaler; a != "" {
		facts = append(facts, Fact{"HPA", a})
	}
	return facts
}

func sourceOf(s *v1alpha1.Source) []Fact {
	every := func(d time.Duration) string { return ", read every " + d.String() }
	switch {
	case s.Pods != nil:
		metric := s.Pods.Metric
		if s.Pods.Type == v1alpha1.MetricCounter {
			metric += ", a counter: its rate per second"
		}
		return []Fact{{"Metric", metric},
			{"Read from", fmt.Sprintf("each pod, port %s, path %s%s", s.Pods.Port.String(), s.Pods.Path,
				every(s.Pods.Interval.Duration))}}
	case s.Prometheus != nil:
		from := fmt.Sprintf("Prometheus at %s, %s%s", s.Prometheus.Address, scopeOf(s.Prometheus.Scope),
			every(s.Prometheus.Interval.Duration))
		return []Fact{{"Query", s.Prometheus.Query}, {"Read from", from}}
	case s.RemoteWrite != nil:
		return []Fact{{"Metric", s.RemoteWrite.Metric + matchers(s.RemoteWrite.MatchLabels)},
			{"Read from", "remote write, " + scopeOf(s.RemoteWrite.Scope)}}
	case s.Resource != nil:
		of := "all containers of a pod"
		if s.Resource.Container != "" {
			of = "the container " + s.Resource.Container
		}
		return []Fact{{"Metric", fmt.Sprintf("%s of %s", s.Resource.Name, of)},
			{"Read from", "metrics.k8s.io" + every(v1alpha1.ResourceInterval)}}
	}
	return nil
}

func scopeOf(scope v1alpha1.Scope) string {
	if scope == v1alpha1.ScopeTarget {
		return "one series for the whole target"
	}
	return "one series for each pod"
}

func matchers(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	parts := make([]string, 0, len(labels))
	for name, value := range labels {
		parts = append(parts, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

func thresholdOf(spec *v1alpha1.PredictedMetricSpec) string {
	text := spec.Threshold.String() + " a pod"
	if spec.Activation != nil {
		text += ", activation " + spec.Activation.String()
	}
	return text
}

func boundsText(pm *v1alpha1.PredictedMetric, least, most *int32) string {
	text := "no minimum"
	if least != nil {
		text = fmt.Sprintf("at least %d", *least)
	}
	if most != nil {
		text += fmt.Sprintf(", at most %d", *most)
	} else {
		text += ", no maximum"
	}
	switch active := pm.Status.ActiveSchedules; {
	case len(active) > 0:
		text += " by the schedule " + strings.Join(active, ", ")
	case len(pm.Spec.Schedules) > 0:
		text += "; no schedule is active"
	}
	return text
}

// problem says why the object is not shown.
func problem(err error, metric types.NamespacedName) string {
	switch {
	case meta.IsNoMatchError(err):
		return "The cluster does not know PredictedMetrics: kubectl apply -k manifests/crds makes it know them."
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("There is no PredictedMetric %s in the cluster of your kubeconfig.", metric)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Sprintf(
			"Metric, port and bounds are not shown, because you may not get predictedmetrics.foresail.dev in namespace %s: %v",
			metric.Namespace, err)
	}
	return "Metric, port and bounds are not shown, because the PredictedMetric cannot be read: " + err.Error()
}
