package hpa

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
)

func metric(name, target string) *v1alpha1.PredictedMetric {
	pm := &v1alpha1.PredictedMetric{Spec: v1alpha1.PredictedMetricSpec{
		ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: target},
		Threshold:      resource.MustParse("700m"), MinReplicas: new(int32(4)), MaxReplicas: new(int32(20)),
		Autoscaler: &v1alpha1.Autoscaler{},
	}}
	pm.Namespace, pm.Name = "shop", name
	return pm
}

func read[T any](t *testing.T, file string) *T {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	object := new(T)
	require.NoError(t, yaml.UnmarshalStrict(data, object))
	return object
}

// Foresail creates the objects that its example and its page recommend.
func TestTheExampleEqualsTheCreatedObject(t *testing.T) {
	example := read[autoscalingv2.HorizontalPodAutoscaler](t,
		"../../../manifests/examples/hpa-predicted-load-total.yaml")
	pm := read[v1alpha1.PredictedMetric](t, "../../../manifests/examples/predictedmetric.yaml")
	pm.Name, pm.Spec.MaxReplicas = example.Name, &example.Spec.MaxReplicas
	got, err := For(pm)
	require.NoError(t, err)
	assert.True(t, equality.Semantic.DeepEqual(example, got), "%+v\n%+v", example, got)
}

func TestThePageEqualsTheCreatedObject(t *testing.T) {
	page, err := os.ReadFile("../../../docs/hpa.md")
	require.NoError(t, err)
	_, block, ok := bytes.Cut(page, []byte("```yaml\nmetrics:\n"))
	require.True(t, ok)
	block, _, _ = bytes.Cut(block, []byte("```"))
	var want autoscalingv2.HorizontalPodAutoscalerSpec
	require.NoError(t, yaml.UnmarshalStrict(append([]byte("metrics:\n"), block...), &want))
	got, err := For(metric("checkout-elu", "checkout"))
	require.NoError(t, err)
	assert.True(t, equality.Semantic.DeepEqual(want.Metrics, got.Spec.Metrics))
	assert.True(t, equality.Semantic.DeepEqual(want.Behavior, got.Spec.Behavior))
}

func TestHPAFollowsTheSpec(t *testing.T) {
	window := func(change func(*v1alpha1.PredictedMetricSpec)) int32 {
		pm := metric("m", "checkout")
		change(&pm.Spec)
		before := pm.DeepCopy()
		hpa, err := For(pm)
		require.NoError(t, err)
		assert.Equal(t, before, pm, "it is of a cache")
		return *hpa.Spec.Behavior.ScaleDown.StabilizationWindowSeconds
	}
	assert.EqualValues(t, 30, window(func(*v1alpha1.PredictedMetricSpec) {}))
	assert.EqualValues(t, 30,
		window(func(s *v1alpha1.PredictedMetricSpec) { s.Autoscaler = nil }), "as foresail hpa prints it")
	assert.EqualValues(t, 120, window(func(s *v1alpha1.PredictedMetricSpec) { s.Holt = &v1alpha1.Holt{} }))
	assert.EqualValues(t, 0, window(func(s *v1alpha1.PredictedMetricSpec) {
		s.Autoscaler.ScaleDownStabilizationSeconds = new(int32(0))
	}))

	zero := metric("m", "checkout")
	zero.Spec.MinReplicas = new(int32(0))
	hpa, err := For(zero)
	require.NoError(t, err)
	assert.EqualValues(t, 0, *hpa.Spec.MinReplicas)
	zero.Spec.MinReplicas = nil
	hpa, err = For(zero)
	require.NoError(t, err)
	assert.EqualValues(t, 1, *hpa.Spec.MinReplicas, "one that no API server has filled in")

	zero.Spec.MaxReplicas = nil
	_, err = For(zero)
	require.EqualError(t, err, "spec.maxReplicas: absent: must be the most replicas that the HPA may set, such as 20")
}

// scheduled returns schedules for an HPA. An HPA names its target without a namespace: it scales in its own.
func scheduled() []v1alpha1.Schedule {
	return []v1alpha1.Schedule{
		{Name: "black-friday", MinReplicas: new(int32(30)), MaxReplicas: new(int32(100))},
		{Name: "night", MinReplicas: new(int32(2))},
		{Name: "holidays", MaxReplicas: new(int32(10)), Learning: v1alpha1.LearningDisabled},
	}
}

func TestHPAHasTheWidestBounds(t *testing.T) {
	pm := metric("m", "checkout")
	pm.Spec.Schedules = scheduled()
	hpa, err := For(pm)
	require.NoError(t, err)
	assert.EqualValues(t, 2, *hpa.Spec.MinReplicas)
	assert.EqualValues(t, 100, hpa.Spec.MaxReplicas)
	assert.EqualValues(t, 20, *pm.Spec.MaxReplicas)

	pm.Spec.MinReplicas = nil // its default is 1
	hpa, err = For(pm)
	require.NoError(t, err)
	assert.EqualValues(t, 1, *hpa.Spec.MinReplicas)
	pm.Spec.MaxReplicas = nil
	_, err = For(pm)
	assert.ErrorContains(t, err, "spec.maxReplicas: absent")
}

func TestHPAIsInTheNamespaceOfItsPredictedMetric(t *testing.T) {
	hpa, err := For(metric("m", "checkout"))
	require.NoError(t, err)
	assert.Equal(t, "shop", hpa.Namespace)
	text, err := yaml.Marshal(hpa)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "namespace:"))
}
