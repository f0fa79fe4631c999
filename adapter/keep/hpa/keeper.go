package hpa

import (
	"context"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Reasons of the condition AutoscalerReady, with those of package keep.
const (
	reasonCurrent   = "AsRecommended"
	reasonContested = "TargetHasAnotherAutoscaler"
	reasonInvalid   = "InvalidSpec"
)

// Keeper keeps the HPAs of PredictedMetrics with spec.autoscaler, and compares their bounds with those of
// ScaledObjects.
type Keeper struct {
	*keep.Keeper[string, struct{}]
	others *scaledObjects
}

// New returns a Keeper.
func New(o keep.Options) *Keeper {
	k := &Keeper{others: newScaledObjects(o)}
	k.Keeper = keep.New(keep.Kind[string, struct{}]{
		Type: hpas,
		Words: keep.Words{
			Kind: hpaKind.Kind, Field: "spec.autoscaler", Subject: "Autoscaler", Action: "Autoscale", Effect: "scales",
			Contested: reasonContested,
			Conflict:  "autoscalers that share pods do not scale; remove that one, or spec.autoscaler",
			DryRun:    "; it reads no forecast, and keeps the replicas within its bounds",
		},
		Fields: keep.Fields[string]{
			Requested: func(s *v1alpha1.PredictedMetricSpec) bool { return s.Autoscaler != nil },
			Status:    func(s *v1alpha1.PredictedMetricStatus) *string { return &s.Autoscaler },
			Condition: v1alpha1.ConditionAutoscalerReady,
		},
		StatusOf: func(name string, _ any) string { return name },
		Plan:     k.plan, Prepare: k.prepare, Rival: k.others.of,
	}, o)
	return k
}

// hpas is how HPAs are read and changed.
var hpas = keep.Type{
	Resource: schema.GroupResource{Group: hpaKind.Group, Resource: "horizontalpodautoscalers"},
	Versions: []string{hpaKind.Version},
	New:      func(string) client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	NewList:  func(string) client.ObjectList { return &autoscalingv2.HorizontalPodAutoscalerList{} },
	Target: func(o client.Object) keep.Target {
		ref := specOf(o).ScaleTargetRef
		return keep.TargetOf(o.GetNamespace(), ref.APIVersion, ref.Kind, ref.Name)
	},
	Spec: func(o client.Object) any { return specOf(o).DeepCopy() },
	SetSpec: func(o client.Object, spec any) {
		spec.(*autoscalingv2.HorizontalPodAutoscalerSpec).DeepCopyInto(specOf(o))
	},
	Conditions: func(client.Object) []metav1.Condition { return nil },
}

func specOf(o client.Object) *autoscalingv2.HorizontalPodAutoscalerSpec {
	return &o.(*autoscalingv2.HorizontalPodAutoscaler).Spec
}

// Start implements keep.Runner.
func (k *Keeper) Start(ctx context.Context) error {
	k.others.forget()
	return k.Keeper.Start(ctx)
}

// AddStatus implements keep.Runner. It adds the condition MaxReplicasMatch too.
func (k *Keeper) AddStatus(pm *v1alpha1.PredictedMetric, status *v1alpha1.PredictedMetricStatus, now time.Time) {
	k.Keeper.AddStatus(pm, status, now)
	if c, known := k.others.maxReplicas(pm.UID); known || pm.Spec.MaxReplicas == nil {
		keep.ReplaceCondition(status, v1alpha1.ConditionMaxReplicasMatch, c, now)
	}
}

// prepare reads ScaledObjects if a PredictedMetric has something that they may contradict.
func (k *Keeper) prepare(ctx context.Context, metrics []*v1alpha1.PredictedMetric) {
	if slices.ContainsFunc(metrics, func(pm *v1alpha1.PredictedMetric) bool {
		return pm.Spec.MaxReplicas != nil || pm.Spec.Autoscaler != nil
	}) {
		k.others.list(ctx)
	}
	k.others.compareMaxima(metrics)
}

// plan returns the recommended HPA, as a keep.Plan. With schedules its bounds are those of the moment: unlike the
// metric, these need no forecast. While they are not known, as after a start, an HPA keeps the previous ones.
func (k *Keeper) plan(pm *v1alpha1.PredictedMetric, _ *keep.Found, _ *struct{}) (keep.Plan[string], error) {
	hpa, err := For(pm)
	if err != nil {
		return nil, &keep.Refusal{Status: metav1.ConditionFalse, Reason: reasonInvalid, Message: err.Error()}
	}
	if len(pm.Spec.Schedules) > 0 {
		s, _ := k.Forecasts.Get(client.ObjectKeyFromObject(pm))
		if s.Bounds == nil {
			return nil, keep.ErrLater
		}
		hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(s.Bounds.Min)), int32(s.Bounds.Max)
	}
	return &recommended{hpa}, nil
}

// recommended is a plan.
type recommended struct {
	*autoscalingv2.HorizontalPodAutoscaler
}

// Spec implements keep.Plan.
func (r *recommended) Spec() any { return &r.HorizontalPodAutoscaler.Spec }

// Status implements keep.Plan.
func (r *recommended) Status() string { return r.Name }

// Condition implements keep.Plan.
func (r *recommended) Condition(_ *keep.Found, got any) metav1.Condition {
	message := "HorizontalPodAutoscaler " + r.Name + " is as recommended"
	b := got.(*autoscalingv2.HorizontalPodAutoscalerSpec).Behavior
	if b == nil || b.ScaleUp == nil || b.ScaleUp.Tolerance == nil {
		message += ", without tolerance, which this API server does not have: the HPA ignores differences of up to 10%"
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonCurrent, Message: message}
}

// Routine implements keep.Plan. Every correction of an HPA is an event.
func (r *recommended) Routine(klog.Logger, any) bool { return false }
