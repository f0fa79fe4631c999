package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/foresail/foresail/adapter/apiservice"
	"github.com/foresail/foresail/adapter/door/custommetrics"
	"github.com/foresail/foresail/api/v1alpha1"
)

// TestCustomMetricsAreGrantedByName compares the ClusterRoles with what is registered and what is served.
func TestCustomMetricsAreGrantedByName(t *testing.T) {
	objects := loadFile(t, "components/custom-metrics/rbac.yaml")
	own := named[*rbacv1.ClusterRole](t, objects, "foresail-custom-metrics")
	var names []string
	for _, api := range apiservice.CustomMetrics(own.Name) {
		names = append(names, api.Name())
	}
	require.Len(t, own.Rules, 2)
	assert.ElementsMatch(t, names, own.Rules[0].ResourceNames)
	assert.Equal(t, []string{own.Name}, own.Rules[1].ResourceNames, "it owns the APIServices")

	var metrics []string
	for _, info := range custommetrics.New(nil, nil).ListAllMetrics() {
		metrics = append(metrics, info.GroupResource.String()+"/"+info.Metric)
	}
	readers := named[*rbacv1.ClusterRole](t, objects, "foresail-custom-metrics-reader")
	require.Len(t, readers.Rules, 1)
	assert.ElementsMatch(t, metrics, readers.Rules[0].Resources)
	binding := named[*rbacv1.ClusterRoleBinding](t, objects, "foresail-custom-metrics-reader")
	assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "horizontal-pod-autoscaler",
		Namespace: "kube-system"}}, binding.Subjects)
}

func TestTheObjectMetricIsAnAlternativeToTheExternalOne(t *testing.T) {
	object := one[*autoscalingv2.HorizontalPodAutoscaler](t, loadFile(t, "examples/hpa-object-metric.yaml"))
	external := one[*autoscalingv2.HorizontalPodAutoscaler](t, loadFile(t, "examples/hpa-predicted-load-total.yaml"))
	pm := one[*v1alpha1.PredictedMetric](t, loadFile(t, "examples/predictedmetric.yaml"))
	require.Len(t, object.Spec.Metrics, 1)
	assert.Equal(t, autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(),
				Kind: "PredictedMetric", Name: pm.Name},
			Metric: autoscalingv2.MetricIdentifier{Name: external.Spec.Metrics[0].External.Metric.Name},
			Target: external.Spec.Metrics[0].External.Target,
		}}, object.Spec.Metrics[0])
	object.Spec.Metrics = external.Spec.Metrics
	assert.Equal(t, external, object, "nothing else differs")
}
