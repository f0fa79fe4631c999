package capacitybuffer

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Reasons of the condition CapacityBufferReady, with those of package keep.
const (
	reasonSized       = "SizedByForecast"
	reasonStarting    = "NodesStarting"
	reasonUnclaimed   = "WaitingForNodeAutoscaler"
	reasonUnactedOn   = "NoNodeAutoscaler"
	reasonUnresolved  = "NotReadyForProvisioning"
	reasonProvisioned = "NotProvisioned"
	reasonNoForecast  = "NoForecast"
	reasonContested   = "TargetHasAnotherBuffer"
)

// reasonRequiresNew is Karpenter's of the condition Provisioning while it starts nodes.
const reasonRequiresNew = "RequiresNewCapacity"

const (
	notServed = "the cluster has no CapacityBuffers (autoscaling.x-k8s.io): install the CustomResourceDefinition of your node autoscaler and turn the " +
		"feature on, for Karpenter 1.14 or later the feature gate CapacityBuffer, for cluster-autoscaler --capacity-buffer-controller-enabled and " +
		"--capacity-buffer-pod-injection-enabled"
	rightsHint = "; manifests/components/capacity-buffer grants the rights"
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
		message += "; no trend extends that far: only recurring load is known"
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

// Status implements keep.Plan.
func (s *sized) Status() status {
	out := &v1alpha1.CapacityBufferStatus{Name: s.name, Replicas: new(int32(s.replicas))}
	if s.unknown == "" {
		out.DesiredReplicas = new(int32(s.then))
	}
	if s.startup.Time > 0 {
		out.NodeStartupTime = &metav1.Duration{Duration: s.startup.Time.Round(time.Second)}
		out.NodesMeasured = new(int32(s.startup.Measured))
	}
	return out
}

// Condition implements keep.Plan. It returns how the node autoscaler acts on the buffer.
func (s *sized) Condition(found *keep.Found, _ any) metav1.Condition {
	message := fmt.Sprintf("CapacityBuffer %s has %d spare pods: %s", s.name, s.replicas, s.explain())
	var conditions []metav1.Condition
	if found != nil {
		conditions = found.Conditions
	}
	resolved := meta.FindStatusCondition(conditions, conditionResolved)
	provisioning := meta.FindStatusCondition(conditions, conditionProvisioning)
	if resolved == nil && provisioning == nil {
		return s.unclaimed(found, message)
	}
	message += ". " + words(conditions)
	switch {
	case resolved != nil && resolved.Status == metav1.ConditionFalse:
		return condition(metav1.ConditionFalse, reasonUnresolved, message)
	case s.unknown != "":
		return condition(metav1.ConditionUnknown, reasonNoForecast, message)
	case provisioning != nil && provisioning.Reason == reasonRequiresNew:
		return condition(metav1.ConditionTrue, reasonStarting, message)
	case provisioning != nil && provisioning.Status == metav1.ConditionFalse && s.replicas > 0:
		return condition(metav1.ConditionFalse, reasonProvisioned, message)
	}
	return condition(metav1.ConditionTrue, reasonSized, message)
}

// unclaimed returns the condition of a buffer that no node autoscaler has seen yet.
func (s *sized) unclaimed(found *keep.Found, message string) metav1.Condition {
	if found == nil || s.at.Sub(found.Created) < claimPeriod {
		return condition(metav1.ConditionUnknown, reasonUnclaimed, message)
	}
	message += ". No node autoscaler acts on it: turn its support of CapacityBuffers on"
	return condition(metav1.ConditionFalse, reasonUnactedOn, message)
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}
