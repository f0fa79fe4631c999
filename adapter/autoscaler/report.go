package autoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// accept reports an HPA that is as recommended.
func (c *Controller) accept(pm *v1alpha1.PredictedMetric, got *autoscalingv2.HorizontalPodAutoscalerSpec) {
	delete(c.retries, pm.UID)
	message := fmt.Sprintf("HorizontalPodAutoscaler %s is as recommended", pm.Name)
	if up := got.Behavior; up == nil || up.ScaleUp == nil || up.ScaleUp.Tolerance == nil {
		message += ", without tolerance, which this API server does not have: the HPA ignores differences of up to 10%"
	}
	c.set(pm.UID, State{HPA: pm.Name, Condition: condition(metav1.ConditionTrue, reasonCurrent, message)})
}

// refuse reports why there is no HPA, or one that is not alone or not as it is to be. hpa names the one that there is.
func (c *Controller) refuse(ctx context.Context, pm *v1alpha1.PredictedMetric, hpa, reason, message string) {
	c.deny(ctx, pm, hpa, corev1.EventTypeWarning, reason, message)
}

// rest reports what dry run holds back, which is no fault.
func (c *Controller) rest(ctx context.Context, pm *v1alpha1.PredictedMetric, hpa, message string) {
	c.deny(ctx, pm, hpa, corev1.EventTypeNormal, reasonDryRun, message)
}

// deny makes an event of a new reason.
func (c *Controller) deny(ctx context.Context, pm *v1alpha1.PredictedMetric, hpa, event, reason, message string) {
	before := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionAutoscalerReady)
	if s, ok := c.State(pm.UID); ok && s.Condition != nil {
		before = s.Condition
	}
	if before == nil || before.Status != metav1.ConditionFalse || before.Reason != reason {
		c.report(ctx, pm, event, reason, message)
	}
	c.set(pm.UID, State{HPA: hpa, Condition: condition(metav1.ConditionFalse, reason, message)})
}

// fail reports a request that failed, and holds the next one back.
func (c *Controller) fail(ctx context.Context, pm *v1alpha1.PredictedMetric, err error) {
	c.retries.Hold(pm, c.Now())
	hpa, reason := c.owned(pm), ""
	switch {
	case errors.As(err, new(*owned.TakenError)):
		hpa, reason = "", reasonNameTaken
	case errors.As(err, new(*pipeline.FieldError)):
		reason = reasonInvalid
	case apierrors.IsForbidden(err):
		reason = reasonForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		reason = reasonRejected
	default: // it may pass, and changes nothing of what is known
		delete(c.retries, pm.UID)
		klog.FromContext(ctx).Error(err, "Cannot write the HorizontalPodAutoscaler of a PredictedMetric; trying again", "predictedmetric", klog.KObj(pm), "in", checkPeriod)
		return
	}
	c.refuse(ctx, pm, hpa, reason, err.Error())
}

// report logs what has happened, and makes an event of it.
func (c *Controller) report(ctx context.Context, pm *v1alpha1.PredictedMetric, kind, reason, message string) {
	klog.FromContext(ctx).Info("Autoscaler", "predictedmetric", klog.KObj(pm), "reason", reason, "message", message)
	c.Events.Eventf(pm, nil, kind, reason, "Autoscale", "%s", message)
}

func condition(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ConditionAutoscalerReady, Status: status, Reason: reason, Message: message}
}
