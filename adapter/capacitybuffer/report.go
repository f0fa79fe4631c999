package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Reasons of the condition CapacityBufferReady.
const (
	reasonSized       = "SizedByForecast"
	reasonStarting    = "NodesStarting"
	reasonRemoving    = "Removing"
	reasonUnclaimed   = "WaitingForNodeAutoscaler"
	reasonUnactedOn   = "NoNodeAutoscaler"
	reasonUnresolved  = "NotReadyForProvisioning"
	reasonProvisioned = "NotProvisioned"
	reasonNoForecast  = "NoForecast"
	reasonContested   = "TargetHasAnotherBuffer"
	reasonNameTaken   = "NameTaken"
	reasonNotServed   = "NotServed"
	reasonForbidden   = "Forbidden"
	reasonRejected    = "RejectedByAPIServer"
	reasonFailing     = "RequestsFail"
	reasonDryRun      = serving.ReasonDryRun
)

// reasonRequiresNew is Karpenter's of the condition Provisioning while it starts nodes.
const reasonRequiresNew = "RequiresNewCapacity"

const (
	notServed = "the cluster has no CapacityBuffers (autoscaling.x-k8s.io): install the CustomResourceDefinition of your node autoscaler and turn the " +
		"feature on, for Karpenter 1.14 or later the feature gate CapacityBuffer, for cluster-autoscaler --capacity-buffer-controller-enabled and " +
		"--capacity-buffer-pod-injection-enabled"
	rightsHint = "; manifests/components/capacity-buffer grants the rights"
	// failingPeriod is for how long requests may fail before the status says so.
	failingPeriod = 30 * time.Second
	// claimPeriod is within what time a node autoscaler that runs has set a condition of a new buffer.
	claimPeriod = time.Minute
)

// explain says what a size comes from.
func (s *sized) explain() string {
	if s.unknown != "" {
		return s.unknown + ": the size stays"
	}
	message := fmt.Sprintf("%d pods are desired in %s, %d now; a node takes %s to start (%s)",
		s.then, s.horizon.Round(time.Second), s.now, s.startup.Time.Round(time.Second), s.origin())
	if s.replicas > s.size() {
		message += fmt.Sprintf("; %d would do, the others were needed a short time ago", s.size())
	} else if s.then-s.now > s.limit() {
		message += ", and more are not allowed"
	}
	if s.window > 0 {
		message += fmt.Sprintf("; a trend is carried on so far only with a window of %s", s.window.Round(time.Second))
	}
	return message
}

func (s *sized) origin() string {
	switch {
	case s.set:
		return "as set"
	case s.startup.Err != nil && s.startup.Measured == 0:
		return "assumed: " + s.startup.Err.Error() + rightsHint
	case s.startup.Measured == 0:
		return "assumed: no pod has waited for a new node yet"
	case s.startup.Measured == 1:
		return "of one node"
	default:
		return fmt.Sprintf("of %d nodes", s.startup.Measured)
	}
}

// status returns what the status has of a buffer.
func (s *sized) status(pm *v1alpha1.PredictedMetric) *v1alpha1.CapacityBufferStatus {
	status := &v1alpha1.CapacityBufferStatus{Name: pm.Name, Replicas: new(int32(s.replicas))}
	if s.unknown == "" {
		status.DesiredReplicas = new(int32(s.then))
	}
	if s.startup.Time > 0 {
		status.NodeStartupTime = &metav1.Duration{Duration: s.startup.Time.Round(time.Second)}
		status.NodesMeasured = new(int32(s.startup.Measured))
	}
	return status
}

// accept reports a buffer that has its size, and what the node autoscaler makes of it.
func (c *Controller) accept(ctx context.Context, pm *v1alpha1.PredictedMetric, s sized, found row, mine bool) {
	delete(c.retries, pm.UID)
	c.remembered(pm).failing = time.Time{}
	status := s.status(pm)
	message := fmt.Sprintf("CapacityBuffer %s has %d spare pods: %s", pm.Name, s.replicas, s.explain())
	var conditions []metav1.Condition
	if mine {
		conditions = found.conditions
	}
	resolved := meta.FindStatusCondition(conditions, conditionResolved)
	provisioning := meta.FindStatusCondition(conditions, conditionProvisioning)
	switch {
	case resolved == nil && provisioning == nil && (!mine || c.Now().Sub(found.created) < claimPeriod):
		c.wait(pm, status, reasonUnclaimed, message)
	case resolved == nil && provisioning == nil:
		c.refuse(ctx, pm, status, reasonUnactedOn, message+". No node autoscaler acts on it: turn its support of CapacityBuffers on")
	case resolved != nil && resolved.Status == metav1.ConditionFalse:
		c.refuse(ctx, pm, status, reasonUnresolved, message+". "+words(conditions))
	case s.unknown != "":
		c.wait(pm, status, reasonNoForecast, message+". "+words(conditions))
	case provisioning != nil && provisioning.Reason == reasonRequiresNew:
		c.set(pm, State{Buffer: status, Condition: condition(metav1.ConditionTrue, reasonStarting, message+". "+words(conditions))})
	case provisioning != nil && provisioning.Status == metav1.ConditionFalse && s.replicas > 0:
		c.refuse(ctx, pm, status, reasonProvisioned, message+". "+words(conditions))
	default:
		c.set(pm, State{Buffer: status, Condition: condition(metav1.ConditionTrue, reasonSized, message+". "+words(conditions))})
	}
}

// wait reports a buffer of which it is not known how it is, or whether it has its size.
func (c *Controller) wait(pm *v1alpha1.PredictedMetric, status *v1alpha1.CapacityBufferStatus, reason, message string) {
	c.set(pm, State{Buffer: status, Condition: condition(metav1.ConditionUnknown, reason, message)})
}

// refuse reports why there is no buffer, or one that is not as it is to be. status is of the one that there is.
func (c *Controller) refuse(ctx context.Context, pm *v1alpha1.PredictedMetric, status *v1alpha1.CapacityBufferStatus, reason, message string) {
	c.deny(ctx, pm, status, corev1.EventTypeWarning, reason, message)
}

// rest reports what dry run holds back, which is no fault.
func (c *Controller) rest(ctx context.Context, pm *v1alpha1.PredictedMetric, status *v1alpha1.CapacityBufferStatus, message string) {
	c.deny(ctx, pm, status, corev1.EventTypeNormal, reasonDryRun, message)
}

// deny makes an event of a new reason.
func (c *Controller) deny(ctx context.Context, pm *v1alpha1.PredictedMetric, status *v1alpha1.CapacityBufferStatus, event, reason, message string) {
	before := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionCapacityBufferReady)
	if s, ok := c.State(pm.UID); ok && s.Condition != nil {
		before = s.Condition
	}
	if before == nil || before.Status != metav1.ConditionFalse || before.Reason != reason {
		c.report(ctx, pm, event, reason, message)
	}
	c.set(pm, State{Buffer: status, Condition: condition(metav1.ConditionFalse, reason, message)})
}

// fail reports a request that failed, and holds the next one back.
func (c *Controller) fail(ctx context.Context, pm *v1alpha1.PredictedMetric, err error) {
	status, reason, message := c.owned(pm), "", err.Error()
	switch {
	case errors.As(err, new(*owned.TakenError)):
		status, reason = nil, reasonNameTaken
	case apierrors.IsForbidden(err):
		reason, message = reasonForbidden, message+rightsHint
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		reason = reasonRejected
	default: // it may pass
		c.suspect(pm, message)
		klog.FromContext(ctx).Error(err, "Cannot write the CapacityBuffer of a PredictedMetric; trying again", "predictedmetric", klog.KObj(pm), "in", checkPeriod)
		return
	}
	c.retries.Hold(pm, c.Now())
	c.refuse(ctx, pm, status, reason, message)
}

// suspect reports that nobody knows how a buffer is, once requests have failed for a while.
func (c *Controller) suspect(pm *v1alpha1.PredictedMetric, message string) {
	k := c.remembered(pm)
	switch {
	case k.failing.IsZero():
		k.failing = c.Now()
	case c.Now().Sub(k.failing) >= failingPeriod:
		c.wait(pm, c.owned(pm), reasonFailing, message)
	}
}

// report logs what has happened, and makes an event of it.
func (c *Controller) report(ctx context.Context, pm *v1alpha1.PredictedMetric, kind, reason, message string) {
	klog.FromContext(ctx).Info("CapacityBuffer", "predictedmetric", klog.KObj(pm), "reason", reason, "message", message)
	c.Events.Eventf(pm, nil, kind, reason, "KeepCapacity", "%s", message)
}

func condition(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ConditionCapacityBufferReady, Status: status, Reason: reason, Message: message}
}
