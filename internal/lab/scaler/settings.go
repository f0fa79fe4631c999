package scaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/pipeline"
)

// RecommendedParams are the settings of the forecast that foresail-* have unless others are tried, for a utilisation.
func RecommendedParams() pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Saturation = utilization()
	return p
}

// PaperParams are the settings of the paper's scaler, for a utilisation.
func PaperParams() pipeline.Params {
	p := pipeline.DefaultParams()
	p.Saturation = utilization()
	return p
}

func utilization() pipeline.Saturation {
	return pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
}

// RecommendedBehavior is what docs/hpa.md recommends for an HPA that reads forecasts: to rise to what is forecast at once,
// and to fall once two looks agree.
func RecommendedBehavior() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	tolerance, atOnce, twoLooks := resource.MustParse("0"), int32(0), int32(30)
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{
			Tolerance: &tolerance, StabilizationWindowSeconds: &atOnce,
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PercentScalingPolicy, Value: 400, PeriodSeconds: 15},
				{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			},
		},
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &twoLooks},
	}
}
