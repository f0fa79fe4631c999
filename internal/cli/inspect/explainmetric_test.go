package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

func TestExplainMetricShowsStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	of := func(s string) *resource.Quantity { return new(resource.MustParse(s)) }
	lasts := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	pm := &v1alpha1.PredictedMetric{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-elu", Generation: 2,
			CreationTimestamp: ago(3 * time.Minute)},
		Spec: v1alpha1.PredictedMetricSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "checkout"},
			Source:         v1alpha1.Source{Pods: &v1alpha1.PodsSource{Metric: "elu"}},
			Threshold:      resource.MustParse("700m"),
		},
		Status: v1alpha1.PredictedMetricStatus{
			UpdateTime: new(ago(4 * time.Second)),
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ForecastServed",
				Message: "a forecast is served"}},
			Current: of("603m"), Predicted: of("881m"), Level: of("2410m"), Trend: of("32m"),
			Replicas: new(int32(4)), DesiredReplicas: new(int32(6)), ReadyReplicas: new(int32(3)),
			Instances:             new(int32(4)),
			TargetDesiredReplicas: new(int32(8)), DrivenBy: "checkout-heap",
			Horizon: lasts(45 * time.Second), StartupTime: lasts(25 * time.Second), StartupsMeasured: new(int32(12)),
			Learned: lasts(5 * time.Hour), Late: "0.8%",
			Source: "pods", SampleInterval: lasts(time.Second), SampleAge: lasts(900 * time.Millisecond),
			SamplesPerSecond: of("2100m"), UnreadablePods: new(int32(1)),
			Served: &v1alpha1.ServedMetrics{LoadTotal: of("4200m"), Load: of("1400m"), Replicas: of("8")},
			LastDecision: &v1alpha1.LastDecision{
				Time: ago(10 * time.Second), Action: "ScaleUp", Reason: "AboveThreshold", Desired: 6,
				Message: "6 replicas instead of 4",
			},
			PreviousDecisions: []v1alpha1.LastDecision{{Time: ago(time.Minute), Action: "Hold", Reason: "NoNeed",
				Desired: 4, Message: "4 replicas fit"}},
		},
	}
	var b strings.Builder
	require.NoError(t, printMetric(&b, pm, now))
	text := b.String()
	for _, want := range []string{
		"PredictedMetric shop/checkout-elu, 3m old, generation 2",
		"Deployment checkout",
		"written 4s ago",
		"4 set, 3 Ready, 6 needed",
		"0.603 a pod, threshold 0.7",
		"8 replicas needed by all PredictedMetrics of the target, the most by checkout-heap",
		"True, ForecastServed: a forecast is served",
		"pods, 2.1 samples a second of all pods",
		"1s between two samples of a pod",
		"900ms when the status was written; not served from 30s on",
		"1 pods",
		"2.41: the load of all pods together",
		"0.032 more each 1s",
		"0.881 a pod in 45s with 4 replicas",
		"45s: the startup time, at least 10s",
		"25s, measured from 12 start-ups",
		"from 5h0m0s of this load",
		"pods were too few for 0.8% of the last day; spec.lateness is 1%",
		"AboveThreshold  6 replicas  6 replicas instead of 4",
		"NoNeed          4 replicas  4 replicas fit",
		"kubectl get hpa shows 1050m/700m (avg)",
		"kubectl get hpa shows 1400m/700m",
		"kubectl get hpa shows 2/1 (avg)",
		"LOAD, 603m",
	} {
		assert.Contains(t, text, want)
	}
	assert.Less(t, strings.Index(text, "6 replicas instead"), strings.Index(text, "4 replicas fit"), "the newest first")

	assert.NotContains(t, text, "schedules", "there are none")

	pm.Status.MinReplicas = new(int32(2))
	b.Reset()
	require.NoError(t, printMetric(&b, pm, now))
	assert.Regexp(t, "schedules +none active: at least 2 replicas now", b.String())
	pm.Status.MinReplicas, pm.Status.MaxReplicas, pm.Status.ActiveSchedules = new(int32(30)), new(int32(100)), []string{"black-friday", "office-hours"}
	b.Reset()
	require.NoError(t, printMetric(&b, pm, now))
	assert.Regexp(t, "schedules +black-friday, office-hours: at least 30 and at most 100 replicas now", b.String())

	assert.NotContains(t, b.String(), "dry run")
	pm.Spec.DryRun = true
	b.Reset()
	require.NoError(t, printMetric(&b, pm, now))
	assert.Regexp(t, "dry run +spec.dryRun is true: nothing acts on this forecast", b.String())

	pm.Status.StartupsMeasured = nil
	b.Reset()
	require.NoError(t, printMetric(&b, pm, now))
	assert.Contains(t, b.String(), "25s, assumed (startupTime)")

	pm.Status = v1alpha1.PredictedMetricStatus{}
	b.Reset()
	require.NoError(t, printMetric(&b, pm, now))
	assert.Contains(t, b.String(), "not written yet: is foresail run --enable adapter running?")
	assert.Contains(t, b.String(), "No decision yet")
	assert.NotContains(t, b.String(), "Samples")
}

func TestAmountsArePlainNumbers(t *testing.T) {
	for written, want := range map[string]string{"700m": "0.7", "0": "0", "2100m": "2.1", "1k": "1000", "100": "100",
		"1Gi": "1073741824", "-32m": "-0.032", "1e3": "1000"} {
		q := resource.MustParse(written)
		assert.Equal(t, want, amount(&q), written)
		assert.Equal(t, resource.MustParse(written), q)
	}
	assert.Equal(t, "unknown", amount(nil))
}
