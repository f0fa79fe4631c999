package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a PredictedMetric.
const (
	// ConditionReady is true while a forecast is served, or would be but for spec.dryRun: its reason is then DryRun.
	ConditionReady = "Ready"
	// ConditionSamplesFresh is true while the newest sample is younger than staleAfter.
	ConditionSamplesFresh = "SamplesFresh"
	// ConditionSamplesSufficient is true while changes of the load show in the samples early enough for the horizon: two samples
	// and their delay take no more than half of it.
	ConditionSamplesSufficient = "SamplesSufficient"
	// ConditionForecastSkillful is true while forecasts are no worse than the present load taken to stay. Absent until enough have been
	// judged.
	ConditionForecastSkillful = "ForecastSkillful"
	// ConditionHorizonSufficient is true while the forecast looks as far ahead as pods need to start.
	ConditionHorizonSufficient = "HorizonSufficient"
	// ConditionTargetFound is true while the target and its scale subresource can be read.
	ConditionTargetFound = "TargetFound"
	// ConditionAutoscalerReady is true while the HorizontalPodAutoscaler of spec.autoscaler is as recommended, and the only one
	// of the target. With spec.dryRun it is false. Without spec.autoscaler it is absent.
	ConditionAutoscalerReady = "AutoscalerReady"
	// ConditionMaxReplicasMatch is true while the ScaledObject of KEDA that scales the target has the maximum of the
	// PredictedMetric. Without a ScaledObject or maxReplicas it is absent.
	ConditionMaxReplicasMatch = "MaxReplicasMatch"
	// ConditionCapacityBufferReady is true while the CapacityBuffer of spec.capacityBuffer has the size that the forecast asks for, and
	// the node autoscaler acts on it. With spec.dryRun it is false. Without spec.capacityBuffer it is absent.
	ConditionCapacityBufferReady = "CapacityBufferReady"
)

// PredictedMetricStatus is what is known of the forecast. A field is absent while its value is unknown.
type PredictedMetricStatus struct {
	// The generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready, SamplesFresh, SamplesSufficient, HorizonSufficient, ForecastSkillful and TargetFound; with spec.autoscaler also AutoscalerReady,
	// with spec.capacityBuffer CapacityBufferReady, with a ScaledObject of KEDA MaxReplicasMatch.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The name of the HorizontalPodAutoscaler that Foresail created for spec.autoscaler.
	// +optional
	Autoscaler string `json:"autoscaler,omitempty"`

	// What is known of the CapacityBuffer that Foresail created for spec.capacityBuffer.
	// +optional
	CapacityBuffer *CapacityBufferStatus `json:"capacityBuffer,omitempty"`

	// The spec.schedules whose bounds hold: their windows are active, or begin within the horizon.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ActiveSchedules []string `json:"activeSchedules,omitempty"`

	// With spec.schedules: the fewest replicas now.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// With spec.schedules: the most replicas now. Absent if there is no limit.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// When this status was written: at once after a decision or a change of a condition, else about every 15s, or less often if there are more than 150 PredictedMetrics.
	// +optional
	UpdateTime *metav1.Time `json:"updateTime,omitempty"`

	// The metric that each instance has now, smoothed, if they share the load evenly. The HPA shows another number:
	// threshold × the replicas needed, divided by the replicas now. It is the threshold while their number is right.
	// +optional
	Current *resource.Quantity `json:"current,omitempty"`

	// The metric that each instance would have at the horizon, with the replicas of now.
	// +optional
	Predicted *resource.Quantity `json:"predicted,omitempty"`

	// The replicas that the target is set to.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// The replicas that the forecast needs.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// The replicas that all PredictedMetrics of the target need together: the largest number. While one of them has no
	// forecast, it does not go below the replicas of now. Those with spec.dryRun do not count.
	// +optional
	TargetDesiredReplicas *int32 `json:"targetDesiredReplicas,omitempty"`

	// The PredictedMetric that targetDesiredReplicas comes from.
	// +optional
	DrivenBy string `json:"drivenBy,omitempty"`

	// The instances that were running when the newest sample was taken.
	// +optional
	Instances *int32 `json:"instances,omitempty"`

	// The pods of the target that are Running and Ready, as the HPA counts them.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// The load of all instances together, smoothed.
	// +optional
	Level *resource.Quantity `json:"level,omitempty"`

	// The change of level in a sample interval.
	// +optional
	Trend *resource.Quantity `json:"trend,omitempty"`

	// How far ahead the load is forecast.
	// +optional
	Horizon *metav1.Duration `json:"horizon,omitempty"`

	// How long a new instance takes to become ready, as assumed or measured.
	// +optional
	StartupTime *metav1.Duration `json:"startupTime,omitempty"`

	// How many start-ups startupTime is measured from; 0: it is assumed (spec.startupTime).
	// +optional
	StartupsMeasured *int32 `json:"startupsMeasured,omitempty"`

	// For how long the load is known: learned as it came, or by the history that Prometheus has of it. A week at the most. Absent with method
	// Holt.
	// +optional
	Learned *metav1.Duration `json:"learned,omitempty"`

	// For what share of about the last day more load came than the pods that were ordered for it hold at the threshold, such as 0.8%:
	// at most spec.lateness in the long run.
	// +optional
	Late string `json:"late,omitempty"`

	// The pods that could not be read last.
	// +optional
	UnreadablePods *int32 `json:"unreadablePods,omitempty"`

	// The values that an HPA reads.
	// +optional
	Served *ServedMetrics `json:"served,omitempty"`

	// The source that samples come from: pods, prometheus, remoteWrite or resource.
	// +optional
	Source string `json:"source,omitempty"`

	// The mean time between two samples of an instance, as the samples show it.
	// +optional
	SampleInterval *metav1.Duration `json:"sampleInterval,omitempty"`

	// The age of the newest sample when this status was written.
	// +optional
	SampleAge *metav1.Duration `json:"sampleAge,omitempty"`

	// The samples that arrive in a second, of all instances together.
	// +optional
	SamplesPerSecond *resource.Quantity `json:"samplesPerSecond,omitempty"`

	// The last decision that differed from the one before.
	// +optional
	LastDecision *LastDecision `json:"lastDecision,omitempty"`

	// The decisions before lastDecision, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	PreviousDecisions []LastDecision `json:"previousDecisions,omitempty"`
}

// CapacityBufferStatus is what is known of a CapacityBuffer that Foresail keeps.
type CapacityBufferStatus struct {
	// Its name.
	// +required
	Name string `json:"name"`

	// The spare pods that it asks for.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// The replicas of the target that will be needed once a node has started that is ordered now.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// How long a new node takes, as assumed, set or measured.
	// +optional
	NodeStartupTime *metav1.Duration `json:"nodeStartupTime,omitempty"`

	// How many nodes nodeStartupTime is measured from; 0: it is assumed, or set.
	// +optional
	NodesMeasured *int32 `json:"nodesMeasured,omitempty"`
}

// ServedMetrics is the values of the external metrics, as they were when the status was written. A value that cannot be
// served is absent.
type ServedMetrics struct {
	// predicted_load_total: threshold × the replicas needed. The HPA shows it divided by the replicas of now.
	// +optional
	LoadTotal *resource.Quantity `json:"predictedLoadTotal,omitempty"`

	// predicted_load: the same, divided by the ready pods.
	// +optional
	Load *resource.Quantity `json:"predictedLoad,omitempty"`

	// predicted_replicas: the replicas that all PredictedMetrics of the target need together.
	// +optional
	Replicas *resource.Quantity `json:"predictedReplicas,omitempty"`
}

// LastDecision is a decision with its reason.
type LastDecision struct {
	// +required
	Time metav1.Time `json:"time"`

	// The direction of the trend: Rising, Falling or Steady.
	// +required
	Direction string `json:"direction"`

	// What the decision does to the replicas: ScaleUp, ScaleDown or Hold.
	// +required
	Action string `json:"action"`

	// The replicas that were needed.
	// +required
	Desired int32 `json:"desired"`

	// The reason as one word.
	// +required
	Reason string `json:"reason"`

	// The reason as a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}
