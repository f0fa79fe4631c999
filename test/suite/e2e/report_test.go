package e2e

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/lab/play/evaluation/evaluationtest"
	"github.com/foresail/foresail/test/env/monitoring"
)

const reportedHours = 8

// TestReportFromPrometheus: a report on what a real Prometheus has of two replicas, one of which
// was replaced, with a pause of both.
func TestReportFromPrometheus(t *testing.T) {
	t.Parallel()
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-report", Selector: "app=none",
		History: 24 * time.Hour})
	now := time.Now().Truncate(time.Second)
	paused := func(at time.Time) bool { ago := now.Sub(at); return ago > 2*time.Hour && ago <= 150*time.Minute }
	replaced := now.Add(-5 * time.Hour)
	var first, second, third []evaluationtest.Scrape
	for _, s := range evaluationtest.Ran(now.Add(-reportedHours*time.Hour), reportedHours*time.Hour) {
		switch {
		case paused(s.At):
			continue
		case s.At.Before(replaced):
			second = append(second, s)
		default:
			third = append(third, s)
		}
		first = append(first, evaluationtest.Scrape{At: s.At.Add(-6 * time.Second), Values: s.Values})
	}
	pm := v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "reported", Name: "web"}}
	pm.Spec = v1alpha1.PredictedMetricSpec{
		ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		Source:         v1alpha1.Source{Pods: &v1alpha1.PodsSource{Metric: "elu"}},
		Threshold:      resource.MustParse("700m"), Saturation: new(resource.MustParse("1")),
		MinReplicas: new(int32(evaluationtest.Min)), MaxReplicas: new(int32(evaluationtest.Max)),
	}
	for pod, scrapes := range map[string][]evaluationtest.Scrape{"foresail-a": first, "foresail-b": second,
		"foresail-c": third} {
		for _, s := range evaluationtest.Exposed(pm.Namespace, pm.Name, pod, scrapes) {
			require.NoError(t, server.Write(t.Context(), stored(s)))
		}
	}

	source := evaluationtest.Source(t, server.URL)
	spans := evaluation.Spans{Names: []string{"7h"}, Lengths: []time.Duration{7 * time.Hour}}
	record, err := evaluation.Read(t.Context(), source, types.NamespacedName{Namespace: pm.Namespace, Name: pm.Name},
		now, spans.Longest())
	require.NoError(t, err)
	assert.Equal(t, evaluationtest.Every, record.Step)
	assert.Equal(t, 3, record.Replicas)
	report, err := evaluation.Evaluate(t.Context(), &pm, record, spans,
		evaluation.Play{Seeds: []uint64{1}, Capacity: 100})
	require.NoError(t, err)
	span := report.Spans[0]
	assert.InDelta(t, 6.5, span.KnownHours, 0.05)
	require.Len(t, span.Gaps, 1)
	assert.InDelta(t, 30, span.Gaps[0].To.Sub(span.Gaps[0].From).Minutes(), 1)
	assert.Equal(t, "all metrics of Foresail", span.Gaps[0].Missing)
	require.Len(t, span.Rows, 5)
	asRan, ours, hpa := span.Rows[0], span.Rows[1], span.Rows[2]
	assert.InDelta(t, podHours(third, now.Add(-7*time.Hour))+podHours(second, now.Add(-7*time.Hour)),
		asRan.PodHours.Value, 0.3, "of two replicas at a time one counts")
	assert.InDelta(t, asRan.PodHours.Value, ours.PodHours.Value, 0.1*asRan.PodHours.Value)
	assert.Greater(t, hpa.TooFewMinutes.Value, ours.TooFewMinutes.Value)
	assert.InDelta(t, 0.81, *span.Forecast.ErrorRatio, 1e-9)

	_, err = evaluation.Read(t.Context(), source, types.NamespacedName{Namespace: pm.Namespace, Name: "wbe"}, now,
		spans.Longest())
	require.ErrorIs(t, err, evaluation.ErrNotRecorded)
	assert.ErrorContains(t, err, `but of others: "reported/web"`)
}

func podHours(scrapes []evaluationtest.Scrape, from time.Time) (sum float64) {
	for _, s := range scrapes {
		if s.At.After(from) {
			sum += s.Values["target_replicas"] * evaluationtest.Every.Hours()
		}
	}
	return sum
}

// stored is a series as it is sent to Prometheus.
func stored(s evaluationtest.Series) (out prompb.TimeSeries) {
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		out.Labels = append(out.Labels, prompb.Label{Name: label, Value: s.Labels[label]})
	}
	for _, v := range s.Samples {
		out.Samples = append(out.Samples, prompb.Sample{Timestamp: v.At.UnixMilli(), Value: v.Value})
	}
	return out
}
