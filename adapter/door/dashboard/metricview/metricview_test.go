package metricview

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
)

func look(t *testing.T, object string) Answer {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	pm := v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(object), &pm))
	v := View{Objects: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&pm).Build()}
	return v.Look(t.Context(), types.NamespacedName{Namespace: "shop", Name: "checkout"})
}

func TestFactsNameMetricAndBounds(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		facts  []Fact
	}{
		"pods": {
			"spec: {threshold: 700m, minReplicas: 2, maxReplicas: 20, source: {pods: {metric: elu, port: 9100}}}\nstatus: {autoscaler: checkout}",
			[]Fact{{"Metric", "elu"}, {"Read from", "each pod, port 9100, path /metrics, read every 1s"},
				{"Threshold", "700m a pod"}, {"Bounds", "at least 2, at most 20"}, {"HPA", "checkout"}},
		},
		"a counter of pods": {
			"spec: {threshold: 50, source: {pods: {metric: requests_total, type: Counter, port: metrics, path: /stats}}}",
			[]Fact{{"Metric", "requests_total, a counter: its rate per second"},
				{"Read from", "each pod, port metrics, path /stats, read every 1s"}, {"Threshold", "50 a pod"},
				{"Bounds", "at least 1, no maximum"}},
		},
		"Prometheus": {
			"spec: {threshold: 10, activation: 1, minReplicas: 0, maxReplicas: 5, source: {prometheus: {address: 'http://prometheus:9090', query: 'sum(rate(jobs[1m]))', scope: Target}}}",
			[]Fact{
				{"Query", "sum(rate(jobs[1m]))"},
				{"Read from", "Prometheus at http://prometheus:9090, one series for the whole target, read every 5s"},
				{"Threshold", "10 a pod, activation 1"}, {"Bounds", "at least 0, at most 5"},
			},
		},
		"remote write, with an active schedule": {
			"spec: {threshold: 10, minReplicas: 1, maxReplicas: 5, schedules: [{name: office-hours}], source: {remoteWrite: {metric: rps, matchLabels: {pod: x, job: shop}}}}\n" +
				"status: {minReplicas: 4, maxReplicas: 9, activeSchedules: [office-hours]}",
			[]Fact{{"Metric", `rps{job="shop", pod="x"}`}, {"Read from", "remote write, one series for each pod"},
				{"Threshold", "10 a pod"}, {"Bounds", "at least 4, at most 9 by the schedule office-hours"}},
		},
		"resource, with a schedule that is not active": {
			"spec: {threshold: 500m, maxReplicas: 5, schedules: [{name: office-hours}], source: {resource: {name: cpu, container: web}}}\nstatus: {minReplicas: 1}",
			[]Fact{{"Metric", "cpu of the container web"}, {"Read from", "metrics.k8s.io, read every 15s"},
				{"Threshold", "500m a pod"}, {"Bounds", "at least 1, at most 5; no schedule is active"}},
		},
	} {
		assert.Equal(t, c.facts, look(t, c.object).Facts, name)
	}
}

func TestConditionsThatFailAreShown(t *testing.T) {
	answer := look(t, `
spec: {threshold: 1, minReplicas: 2, maxReplicas: 20}
status:
  conditions:
  - {type: Ready, status: "False", reason: ScaleUnreadable, message: no such Deployment}
  - {type: TargetFound, status: "False", reason: ScaleUnreadable, message: no such Deployment}
  - {type: SamplesFresh, status: "True", reason: SamplesArriving}
`)
	assert.Equal(t, []Condition{{"TargetFound", "False", "ScaleUnreadable", "no such Deployment"}}, answer.Failing)
	assert.EqualValues(t, 2, *answer.Min)
	assert.EqualValues(t, 20, *answer.Max)
}

func TestProblemsSayWhatIsMissing(t *testing.T) {
	metric := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	kind := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "predictedmetrics"}
	for want, err := range map[string]error{
		"you may not get predictedmetrics.foresail.dev in namespace shop": apierrors.NewForbidden(kind,
			"checkout", errors.New("no")),
		"There is no PredictedMetric shop/checkout in the cluster": apierrors.NewNotFound(kind, "checkout"),
		"cannot be read: connection refused":                       errors.New("connection refused"),
	} {
		objects := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
		}).Build()
		assert.Contains(t, (&View{Objects: objects}).Look(t.Context(), metric).Problem, want)
		assert.NotEmpty(t, (&View{Failure: err}).Look(t.Context(), metric).Problem)
	}
}
