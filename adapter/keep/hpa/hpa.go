// Package hpa builds the HorizontalPodAutoscaler that Foresail recommends for a PredictedMetric. With spec.autoscaler,
// package keep keeps that HPA in the cluster.
package hpa

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// hpaKind is the kind that this package writes.
var hpaKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")

// For returns the HPA that is recommended for a PredictedMetric, of the same name. With schedules it has the widest of
// their bounds: the metric keeps to those of the moment. It fails if the spec lacks what the HPA needs.
func For(pm *v1alpha1.PredictedMetric) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	spec := pm.Spec.DeepCopy()
	if spec.Autoscaler == nil {
		spec.Autoscaler = &v1alpha1.Autoscaler{}
	}
	spec.Default()
	if spec.MaxReplicas == nil {
		return nil, &pipeline.FieldError{Field: "spec.maxReplicas", Value: "absent",
			Accept: "the most replicas that the HPA may set, such as 20"}
	}
	fewest, most := spec.WidestBounds()
	apiVersion, kind := hpaKind.ToAPIVersionAndKind()
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: pm.Name, Namespace: pm.Namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: spec.ScaleTargetRef.APIVersion, Kind: spec.ScaleTargetRef.Kind,
				Name: spec.ScaleTargetRef.Name,
			},
			MinReplicas: fewest,
			MaxReplicas: *most,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{
						Name:     serving.LoadTotal,
						Selector: &metav1.LabelSelector{MatchLabels: map[string]string{serving.LabelMetric: pm.Name}},
					},
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
						AverageValue: &spec.Threshold},
				},
			}},
			Behavior: behavior(*spec.Autoscaler.ScaleDownStabilizationSeconds),
		},
	}, nil
}

// ReadObjectMetric has the HPA of For read the same metric over custom.metrics.k8s.io, where the PredictedMetric is the
// object.
func ReadObjectMetric(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	external := hpa.Spec.Metrics[0].External
	hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(),
				Kind: "PredictedMetric", Name: hpa.Name},
			Metric: autoscalingv2.MetricIdentifier{Name: external.Metric.Name},
			Target: external.Target,
		},
	}}
}

// behavior is the one that docs/hpa.md gives the reasons for.
func behavior(scaleDownSeconds int32) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{
			// an API server that does not know the field drops it
			Tolerance:                  new(resource.MustParse("0")),
			StabilizationWindowSeconds: new(int32(0)),
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PercentScalingPolicy, Value: 400, PeriodSeconds: 15},
				{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			},
		},
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &scaleDownSeconds},
	}
}
